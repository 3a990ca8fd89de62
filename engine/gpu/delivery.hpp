// What a device has found out, on its way to the owner of the search.
#pragma once

#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {

/// Delivers what is the host's whatever a launch of the domain stage that takes so many seconds
/// finds out: threads that wait for that would come to it last.
void deliver_early(DomainWork& work, double patience);
/// Delivers all that is left of it; how many pairs.
std::size_t deliver(DomainWork& work);

}  // namespace hmmjit::gpu
