// What a search had no time to compile is compiled after it, so that the next one has it.
#pragma once

#include <sys/types.h>

#include <optional>

#include "gpu/gpu_filters.hpp"

namespace hmmjit::tools {

/// Starts `program cache warm --idle` for these kernels, in a session of its own, with nothing open
/// but /dev/null, and does not wait for it: it has the lowest priority, and there is one of them at
/// a time for each kernel cache. Does nothing where there is nothing to compile, where the cache
/// keeps nothing, or where HMMJIT_COMPILE_AFTERWARDS is 0, no or off. Its process, if one was
/// started.
std::optional<pid_t> compile_afterwards(const gpu::GpuFilters::UnfinishedKernels& kernels,
                                        const char* program = "/proc/self/exe");

}  // namespace hmmjit::tools
