// Cores, threads and CPU times of this process.
#pragma once

#include <functional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/float_mode.hpp"

namespace hmmjit {

/// Cores granted to the process: the minimum of the scheduler affinity mask and the cgroup CPU
/// quota (v1 and v2, rounded up); at least 1.
int available_cores();

/// True if the system lets this process start `count` more threads now (limits on processes,
/// control group tasks, address space). Starts them briefly, because some libraries, including the
/// CUDA driver, abort or hang if a thread is refused.
bool can_start_threads(int count);

/// Raises the calling thread's nice value by `steps`, for good: the system may forbid lowering it
/// again.
void lower_thread_priority(int steps);

/// A thread that runs `work`, under a static `name` of at most 15 characters. If `work` runs out of
/// memory, the thread calls `out_of_memory`, which must not throw, and ends.
std::thread thread_until_out_of_memory(const char* name, std::function<void()> work,
                                       std::function<void()> out_of_memory);

/// The error for threads that the system refused to start: "`threads` cannot be started".
Error refused_threads(std::string_view threads, const std::system_error& refusal);

/// CPU time used by the calling thread so far, in seconds.
double thread_seconds();

/// Measures the core-seconds of the thread that uses it.
class CoreClock {
 public:
  /// Core-seconds since the last lap, or since construction.
  double lap() {
    const double now = thread_seconds();
    return now - std::exchange(begun_, now);
  }

 private:
  double begun_ = thread_seconds();
};

/// Sets the default mode with flush-to-zero for subnormal results, but without denormals-are-zero,
/// as every worker thread of HMMER's SSE build does; printed results below 1e-307 depend on it.
/// Restores the previous mode when destroyed. Each thread that runs float stages needs one.
class FlushToZeroScope : public FloatControlScope {
 public:
  FlushToZeroScope() : FloatControlScope({.mode = kFlushToZero}) {}
};

}  // namespace hmmjit
