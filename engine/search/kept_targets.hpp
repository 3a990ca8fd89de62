// Targets that are searched several times: read once, then kept in memory.
#pragma once

#include <memory>

#include "search/target_source.hpp"

namespace hmmjit {

/// Passes the targets of `source` on and keeps them, packed as in a target database, so that after
/// `rewind` they come from memory. Beyond `memory` bytes they are let go, and each pass reads
/// `source` again; where that cannot be read again, `rewind` fails with kResources. Targets of a
/// mapped database are not copied.
std::unique_ptr<TargetSource> keep_targets(std::unique_ptr<TargetSource> source,
                                           std::uint64_t memory);

}  // namespace hmmjit
