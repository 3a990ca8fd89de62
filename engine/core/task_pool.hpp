// Prioritised tasks on a bounded number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.hpp"

namespace hmmjit {

/// Order in which waiting tasks start: smaller class first, then smaller rank.
enum class TaskClass : std::uint8_t {
  kControl,      ///< reading, model set-up, emission: other tasks wait for these
  kLargeDomain,  ///< large targets, largest first, so that none is begun last
  kDomain,       ///< batches of targets, earliest model first, so that results leave
  kFilter,       ///< filter tasks, earliest model first
};

/// Tasks that wait, the most urgent first. It has no lock.
class TaskQueue {
 public:
  void push(TaskClass task_class, double rank, std::function<void()> work);
  /// Removes and returns the most urgent task. The queue must not be empty.
  std::function<void()> pop();
  bool empty() const { return tasks_.empty(); }
  std::size_t size() const { return tasks_.size(); }

 private:
  struct Task {
    TaskClass task_class;
    double rank;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Task& other) const {  // heaps of the library: greatest first
      if (task_class != other.task_class) return task_class > other.task_class;
      if (rank != other.rank) return rank > other.rank;
      return order > other.order;
    }
  };
  std::vector<Task> tasks_;  // a heap
  std::uint64_t order_ = 0;
};

/// Threads that sleep until each is woken. All calls are made with the same mutex held.
class SleepingThreads {
 public:
  /// Wakes one that is asleep; false where none is.
  bool wake_one() {
    if (sleeping_ <= to_wake_) return false;
    ++to_wake_;
    wakes_.notify_one();
    return true;
  }
  /// Wakes all, for good: no thread sleeps from now on.
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

/// At most `threads` threads run tasks, the one in `run` among them. The others are started when
/// there is a task for them; where the system refuses one, the pool goes on with those it has,
/// and `threads()` is their number. An idle thread takes the first task in priority order, whoever
/// submitted it. Tasks may submit tasks and must not wait for one another. Every task runs with
/// flush-to-zero set.
///
/// Why there is no library for this: oneTBB, which did it before, starts a worker from another
/// worker and ends the process where the system refuses (a limit on address space, on processes,
/// a cgroup); it waits for ever where memory runs out in the meantime; its workers keep the
/// priority they were given, in a program that only links to this library; and it writes warnings
/// to the program's standard error. Every task goes through the one priority queue, so that work
/// stealing was of no use.
class TaskPool {
 public:
  /// `lower_priority`: see SearchOptions. `on_refusal` is called once, from any thread, where the
  /// system does not let another thread be started; it may be empty.
  explicit TaskPool(int threads, int lower_priority = 0, std::function<void()> on_refusal = {});
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  /// Runs `first` and everything submitted from it on; returns when no task is left. One call at
  /// a time. What a task throws first is thrown here, after the tasks that had begun have ended;
  /// the others are never begun.
  void run(std::function<void()> first);
  /// Keeps `run` from returning until `release`, so that threads outside may submit meanwhile.
  /// From within tasks.
  void hold();
  /// Thread-safe; without `hold` nothing happens.
  void release();
  /// Thread-safe; from within tasks, or from any thread while held: what comes from outside after
  /// that is dropped.
  void submit(TaskClass task_class, double rank, std::function<void()> work);
  /// Threads that the pool has, or may still start. Thread-safe.
  int threads() const;
  /// Tasks that have not been begun. Thread-safe.
  std::size_t waiting() const;

 private:
  bool task_waits() const HMMJIT_REQUIRES(mutex_) { return !queue_.empty() && failure_ == nullptr; }
  bool complete() const HMMJIT_REQUIRES(mutex_) {
    return busy_ == 0 && !task_waits() && (!held_ || failure_ != nullptr);
  }
  // Finds a thread for a task that waits: one that sleeps, or a new one.
  void find_thread() HMMJIT_REQUIRES(mutex_);
  // These two unlock while they work.
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
  TaskQueue queue_ HMMJIT_GUARDED_BY(mutex_);
  // Threads that run a task or start a thread.
  int busy_ HMMJIT_GUARDED_BY(mutex_) = 0;
  bool held_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool starting_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool ending_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ HMMJIT_GUARDED_BY(mutex_);
  SleepingThreads workers_asleep_ HMMJIT_GUARDED_BY(mutex_);
  SleepingThreads runner_asleep_ HMMJIT_GUARDED_BY(mutex_);  // the thread in `run`
};

/// Calls `work` with 0 to `count` - 1, on at most `threads` threads at once; what it throws first
/// comes out.
void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace hmmjit
