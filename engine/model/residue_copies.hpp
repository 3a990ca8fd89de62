// Residues that stay as they were checked.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "model/alphabet.hpp"
#include "model/targets.hpp"

namespace hmmjit {

/// Residues of targets for code that uses them as table indices, or reads them twice. A block that
/// is a view of a database shows bytes of a mapped file: another process may overwrite them after
/// they were checked. Those are copied and checked again; what a block has in its own storage is
/// used where it is. One thread at a time.
class ResidueCopies {
 public:
  /// The residues of target `i` of `block`, a byte that may be read on either side, until `clear`
  /// (or the block goes). Fails with kInput where a byte is no code of `alphabet`.
  Result<std::span<const Residue>> of(const TargetBlock& block, std::size_t i,
                                      const Alphabet& alphabet);
  void clear() { copies_.clear(); }

 private:
  std::vector<std::unique_ptr<Residue[]>> copies_;
};

}  // namespace hmmjit
