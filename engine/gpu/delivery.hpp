// What a device has found out, on its way to the owner of the search.
#pragma once

#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {

/// Delivers at once what is left to the host in any case: open targets, and those that are too large
/// for a launch of the domain stage of so many seconds. Otherwise threads would come to these last.
void deliver_early(DomainWork& work, double patience);
/// Delivers the rest of it. Returns the number of pairs.
std::size_t deliver(DomainWork& work);

}  // namespace hmmjit::gpu
