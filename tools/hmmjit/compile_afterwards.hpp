// After a search, compiles the kernels that it had no time for, for later searches.
#pragma once

#include <sys/types.h>

#include <optional>

#include "core/cgroup.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::tools {

/// Starts `program cache warm --idle` for these kernels in its own session, with only /dev/null
/// open, and does not wait. The process has the lowest priority; each kernel cache has at most one.
/// Starts none if there is nothing to compile, if the cache stores nothing, if
/// HMMJIT_COMPILE_AFTERWARDS is 0, no or off, or, with the variable unset, in a batch job or under
/// a CPU quota, which compiles would use up. Returns the started process, if any.
std::optional<pid_t> compile_afterwards(const gpu::GpuFilters::UnfinishedKernels& kernels,
                                        const char* program = "/proc/self/exe",
                                        const CgroupFiles& groups = {});

}  // namespace hmmjit::tools
