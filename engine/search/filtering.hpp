// Filters a part of a block for a model, from the beginning or after a device.
#pragma once

#include <vector>

#include "search/work.hpp"

namespace hmmjit::search_run {

/// The targets that passed. Notes counts and times in the job, the thread's state and `progress`.
Result<std::vector<WaitingTarget>> filter(const FilterRange& work, ThreadState& local,
                                          SearchProgress& progress);
/// The same for the units that a device has begun.
Result<std::vector<WaitingTarget>> filter(const FilterRest& work, ThreadState& local,
                                          SearchProgress& progress);

}  // namespace hmmjit::search_run
