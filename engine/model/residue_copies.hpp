// Checked residues that cannot change.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "model/alphabet.hpp"
#include "model/targets.hpp"

namespace hmmjit {

/// Residues of targets, for code that uses them as table indices or reads them twice. Copies and
/// checks the residues of a mapped database, because another process may overwrite the file at any
/// time. Uses other residues in place. One thread at a time.
class ResidueCopies {
 public:
  /// The residues of target `i` of `block`, with one readable byte on either side; valid until
  /// `clear` and while the block lives. Fails with kInput if a byte is not a code of `alphabet`.
  Result<std::span<const Residue>> of(const TargetBlock& block, std::size_t i,
                                      const Alphabet& alphabet);
  void clear() { copies_.clear(); }

 private:
  std::vector<std::unique_ptr<Residue[]>> copies_;
};

}  // namespace hmmjit
