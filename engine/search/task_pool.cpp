#include "search/task_pool.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "core/threads.hpp"

namespace hmmjit {
namespace {
thread_local bool t_in_task = false;
thread_local int t_lowered = 0;  // steps of priority
thread_local unsigned t_tasks = 0;  // begun
// What most threads of a search come to hold at a time, in blocks that are no mappings.
constexpr std::size_t kThreadHeap = std::size_t{6} << 20;
// A thread reaches ahead in its heap (1,500 pages, 0.3 ms) at this task of its own: searches that
// end before that are better off without.
constexpr unsigned kTaskOfHeap = 4;

// Hands a task to TBB, which may start one more worker for it. Where the system gives no thread,
// TBB throws after it has taken the task: what runs already will do it. An exception that left from
// here would end the process or, in the thread that runs the pool, wait for ever for that task.
template <typename Spawn>
void without_new_threads_if_need_be(Spawn&& spawn) {
  try {
    spawn();
  } catch (const std::runtime_error&) {
  }
}
}  // namespace

TaskPool::TaskPool(int threads, int lower_priority)
    : threads_(1 + startable_threads(threads - 1)),
      lower_priority_(lower_priority),
      arena_(threads_) {
  // The arena bounds this pool. A control bounds the whole process, other pools and a host's own
  // use of TBB included, so there is none unless it has to raise the limit.
  const auto wanted = static_cast<std::size_t>(threads_);
  if (wanted > tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))
    control_.emplace(tbb::global_control::max_allowed_parallelism, wanted);
}

void TaskPool::run(std::function<void()> first) {
  arena_.execute([&] {
    queue_.push(
        {TaskClass::kControl, 0, order_.fetch_add(1, std::memory_order_release), std::move(first)});
    without_new_threads_if_need_be([this] { group_.run([this] { run_next(); }); });
    group_.wait();
  });
  // TBB orders all that tasks wrote before this point; saying so again costs nothing and can be
  // checked by the thread sanitizer, which does not see into the TBB library.
  (void)ended_.load(std::memory_order_acquire);
}

void TaskPool::submit(TaskClass task_class, double rank, std::function<void()> work) {
  Task task{task_class, rank, order_.fetch_add(1, std::memory_order_release), std::move(work)};
  if (!t_in_task) {
    const std::lock_guard lock(hold_mutex_);
    if (!hold_) return;
    queue_.push(std::move(task));
    without_new_threads_if_need_be(
        [this] { arena_.enqueue(group_.defer([this] { run_next(); })); });
    return;
  }
  queue_.push(std::move(task));
  // One anonymous run per task: whoever gets it takes the most urgent task waiting then.
  without_new_threads_if_need_be([this] { group_.run([this] { run_next(); }); });
}

void TaskPool::hold() {
  const std::lock_guard lock(hold_mutex_);
  hold_ = group_.defer([] {});
}

void TaskPool::release() {
  tbb::task_handle released;
  const std::lock_guard lock(hold_mutex_);
  released = std::move(hold_);
}

void TaskPool::run_next() {
  struct End {  // after the task with all it holds is gone
    std::atomic<std::uint64_t>& count;
    ~End() { count.fetch_add(1, std::memory_order_release); }
  } const end{ended_};
  (void)order_.load(std::memory_order_acquire);  // likewise what went before the submission
  // Before the task, so that what it holds may submit as it goes.
  struct InTask {
    bool before = std::exchange(t_in_task, true);
    ~InTask() { t_in_task = before; }
  } in_task;
  if (t_lowered < lower_priority_) {
    lower_thread_priority(lower_priority_ - std::exchange(t_lowered, lower_priority_));
  }
  if (++t_tasks == kTaskOfHeap) reach_ahead_in_heap(kThreadHeap);
  Task task{};
  if (!queue_.try_pop(task)) return;
  const FlushToZeroScope flush_to_zero;
  try {
    task.work();
  } catch (...) {
    release();  // nobody else would, once the group is cancelled
    throw;
  }
}

}  // namespace hmmjit
