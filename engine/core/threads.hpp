// How many threads this process may keep busy, and what a thread has used.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

#include "core/float_mode.hpp"

namespace hmmjit {

/// Cores granted to the process: the smallest of the scheduler affinity mask and the cgroup CPU
/// quota (v1 and v2, rounded up), at least 1.
int available_cores();

/// How many of `wanted` further threads the system lets this process start (limits on processes,
/// the cgroup's number of tasks, address space). Found by starting them all for a moment, because
/// some libraries abort or hang where a thread is refused; a number that could be started once is
/// not tried again.
int startable_threads(int wanted);

/// Lets threads of ordinary priority go before the calling one, by so many steps of nice(2), for
/// good: the system need not allow it to be taken back.
void lower_thread_priority(int steps);

/// A thread that does `work`. Where that runs out of memory the thread ends, not the process, and
/// `out_of_memory`, if any, is called before; it must not throw.
std::thread thread_until_out_of_memory(std::function<void()> work,
                                       std::function<void()> out_of_memory);

/// Makes so much of the calling thread's heap accessible ahead of its use; takes no memory but some
/// pages. The GNU C library grows the heap of a thread, but for the first, by a page whenever one
/// is needed, in a system call that waits for the page faults of all threads and keeps them
/// waiting: a search of a second made 9,000 such calls, the start of the driver a thousand of them.
/// Elsewhere without effect.
void reach_ahead_in_heap(std::size_t bytes);

/// Makes the C library ready for exceptions that pass through it, as from std::call_once: the GNU C
/// library opens the unwinder only then, and ends the process where there is no memory for that.
/// Elsewhere without effect.
void open_unwinder();

/// Processor time the calling thread has used so far, in seconds.
double thread_seconds();

/// Sets flush-to-zero for subnormal results and leaves denormals-are-zero off, as every worker
/// thread of HMMER's SSE build does; results printed below 1e-307 depend on it. Restores
/// the previous mode when destroyed. Construct one per thread that runs float stages.
class FlushToZeroScope : public FloatModeScope {
 public:
  FlushToZeroScope() : FloatModeScope(flushing_to_zero(float_mode())) {}
};

}  // namespace hmmjit
