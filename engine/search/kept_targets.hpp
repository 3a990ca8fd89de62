// Keeps targets that are searched several times in memory.
#pragma once

#include <memory>

#include "search/target_source.hpp"

namespace hmmjit {

/// Passes on the targets of `source` and keeps them, packed as in a target database, so that they
/// come from memory after `rewind`. Beyond `memory` bytes they are released, and each pass reads
/// `source` again; if that is impossible, `rewind` fails with kResources. Targets of a mapped
/// database are kept as they are.
std::unique_ptr<TargetSource> keep_targets(std::unique_ptr<TargetSource> source,
                                           std::uint64_t memory);

/// Reads all targets of `source` into memory. Fails with kResources beyond `memory` bytes (0: no
/// bound).
Result<std::shared_ptr<const ResidentTargets>> load_targets(TargetSource& source,
                                                            std::uint64_t memory);

/// Consecutive targets of a source, in memory, as a source of their own.
class TargetChunk final : public TargetSource {
 public:
  /// Reads about `residues` residues of `source`; empty at its end.
  static Result<std::unique_ptr<TargetChunk>> read(TargetSource& source, std::size_t residues);
  std::size_t size() const { return block_.size(); }
  std::uint64_t first_index() const { return block_.first_index(); }
  TargetView operator[](std::size_t i) const { return block_[i]; }

  Result<bool> next(TargetBlock& block, std::size_t residues) override;
  Status rewind() override;
  bool rewindable() const override { return true; }

 private:
  TargetBlock block_;  // a view
  bool delivered_ = false;
};

}  // namespace hmmjit
