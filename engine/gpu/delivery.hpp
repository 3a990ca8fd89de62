// What a device has found out, on its way to the owner of the search.
#pragma once

#include <cstddef>
#include <optional>

#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {

// What is left to the host in any case is delivered at once. Otherwise threads would come to it
// last.

/// Delivers the open targets of a chain, none of whose targets have been delivered.
void deliver_open(FilteredChain& chain);
/// Delivers targets that are too large for a launch of the domain stage of so many seconds.
void deliver_large(DomainWork& work, double patience);
/// Delivers the targets with what has been found out about them and, with the last part of a chain,
/// its pairs, whose number is returned; none while other parts are left.
std::optional<std::size_t> deliver(DomainWork& work);

}  // namespace hmmjit::gpu
