// Compiles the kernels that a search had no time for after it, for the next search.
#pragma once

#include <sys/types.h>

#include <optional>

#include "core/cgroup.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::tools {

/// Starts `program cache warm --idle` for these kernels in a session of its own, with only
/// /dev/null open, and does not wait for it. The process has the lowest priority; each kernel cache
/// has at most one. Does nothing if there is nothing to compile, if the cache stores nothing, if
/// HMMJIT_COMPILE_AFTERWARDS is 0, no or off, or, unless it is set, in a batch job or under a CPU
/// quota, which the compiles would use up. Returns the process, if one was started.
std::optional<pid_t> compile_afterwards(const gpu::GpuFilters::UnfinishedKernels& kernels,
                                        const char* program = "/proc/self/exe",
                                        const CgroupFiles& groups = {});

}  // namespace hmmjit::tools
