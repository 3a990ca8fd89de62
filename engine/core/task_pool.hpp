// Tasks on a bounded number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.hpp"

namespace hmmjit {

/// Sleeping threads, each woken individually. All calls must hold the same mutex.
class SleepingThreads {
 public:
  /// Wakes a sleeping thread; false if there is none.
  bool wake_one() {
    if (sleeping_ <= to_wake_) return false;
    ++to_wake_;
    wakes_.notify_one();
    return true;
  }
  /// Wakes all; no thread sleeps from now on.
  void wake_all() {
    ended_ = true;
    wakes_.notify_all();
  }
  void sleep(MutexLock& lock) {
    ++sleeping_;
    while (to_wake_ == 0 && !ended_) lock.wait(wakes_);
    --sleeping_;
    if (to_wake_ > 0) --to_wake_;
  }

 private:
  std::size_t sleeping_ = 0, to_wake_ = 0;
  bool ended_ = false;
  std::condition_variable wakes_;
};

/// A thread pool: at most `threads` threads, including the caller of `run`, take tasks in the order
/// in which they were submitted. Threads are started on demand; if the system refuses one, the pool
/// continues with those it has, and `threads()` returns their number. Tasks may submit tasks and
/// must not wait for one another. Every task runs with flush-to-zero set.
///
/// Why not a library: oneTBB starts workers from workers and ends the process if the system refuses
/// (limits on address space, processes, a cgroup); it deadlocks if memory runs out meanwhile; its
/// workers keep their priority in programs that only link to this library; and it writes warnings
/// to standard error. With a single queue, work stealing has no use.
class TaskPool {
 public:
  /// `lower_priority`: see SearchOptions. `on_refusal` (may be empty) is called once, from any
  /// thread, if the system refuses to start a thread.
  explicit TaskPool(int threads, int lower_priority = 0, std::function<void()> on_refusal = {});
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  /// Runs `first` and all tasks submitted from it on; returns once none is left. One call at a
  /// time. Rethrows the first exception of a task after all running tasks have ended; the others
  /// never start.
  void run(std::function<void()> first);
  /// Thread-safe; called from tasks.
  void submit(std::function<void()> work);
  /// Threads that the pool has or may still start. Thread-safe.
  int threads() const;

 private:
  bool task_waits() const HMMJIT_REQUIRES(mutex_) { return !queue_.empty() && failure_ == nullptr; }
  bool complete() const HMMJIT_REQUIRES(mutex_) { return busy_ == 0 && !task_waits(); }
  // Finds a thread for a waiting task: a sleeping or a new one.
  void find_thread() HMMJIT_REQUIRES(mutex_);
  // These two unlock the mutex while they work.
  void start_worker() HMMJIT_REQUIRES(mutex_);
  void run_next() HMMJIT_REQUIRES(mutex_);
  void no_longer_busy() HMMJIT_REQUIRES(mutex_);
  void work();

  const int lower_priority_;
  const std::function<void()> on_refusal_;

  mutable Mutex mutex_;
  std::size_t most_workers_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t started_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> workers_ HMMJIT_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> queue_ HMMJIT_GUARDED_BY(mutex_);
  // Threads that run a task or start a thread.
  int busy_ HMMJIT_GUARDED_BY(mutex_) = 0;
  bool starting_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool ending_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ HMMJIT_GUARDED_BY(mutex_);
  SleepingThreads workers_asleep_ HMMJIT_GUARDED_BY(mutex_);
  SleepingThreads runner_asleep_ HMMJIT_GUARDED_BY(mutex_);  // the thread in `run`
};

/// Calls `work` with 0 to `count` - 1, on at most `threads` threads; rethrows the first exception.
void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace hmmjit
