// Delivers a device's findings to the owner of the search.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {

// Targets that are left to the host in any case are delivered at once; otherwise its threads would
// do them last.

/// What a chain has found becomes its work: that has the targets that passed, and nobody else, since
/// parts of it are delivered by several threads at a time. The chain has the rest.
void take_found(DomainWork& work, CascadeResult found, std::vector<Claim> claims);
/// Delivers the open targets of a chain, none of whose targets have been delivered.
void deliver_open(FilteredChain& chain);
/// Delivers the targets that are too large for a launch of the domain stage of `launch_seconds`.
void deliver_large(DomainWork& work, double launch_seconds);
/// Delivers the targets with what has been found out about them and, with the last part of a chain,
/// its pairs, whose number is returned; none while other parts are left.
std::optional<std::size_t> deliver(DomainWork& work);

}  // namespace hmmjit::gpu
