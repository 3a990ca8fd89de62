// Keeps targets that are searched several times in memory.
#pragma once

#include <memory>
#include <vector>

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

/// Reads about `residues` residues of `source` into memory, as a view; empty at its end.
Result<TargetBlock> load_block(TargetSource& source, std::size_t residues);
/// Blocks that are views.
std::shared_ptr<const ResidentTargets> resident_targets(std::vector<TargetBlock> blocks);

}  // namespace hmmjit
