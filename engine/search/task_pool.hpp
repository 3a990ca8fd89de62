// Prioritised tasks on a bounded number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hmmjit {

/// Order in which waiting tasks start: smaller class first, then smaller rank.
enum class TaskClass : std::uint8_t {
  kControl,      ///< reading, model set-up, emission: what others wait for
  kLargeDomain,  ///< large targets, largest first, so that none is begun last
  kDomain,       ///< batches of targets, earliest model first, so that results leave
  kFilter,       ///< filter tasks, earliest model first
};

/// At most `threads` threads run tasks, the one in `run` among them. The others are started when
/// there is a task for them; where the system refuses one, the pool goes on with those it has,
/// and `threads()` tells how many. An idle thread takes the first task in priority order, whoever
/// submitted it. Tasks may submit tasks and must not wait for one another. Every task runs with
/// flush-to-zero set.
///
/// Why there is no library for this: oneTBB, which did it before, starts a worker from another
/// worker and ends the process where the system refuses (a limit on address space, on processes,
/// a cgroup); it waits for ever where memory runs out meanwhile; its workers keep the priority they
/// were given, in a program that only links to this library; and it writes warnings to the
/// program's standard error. Every task goes through the one priority queue, so that work stealing
/// was of no use.
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
  /// Those the pool may still come to. Thread-safe.
  int threads() const;
  /// Tasks that have not been begun. Thread-safe.
  std::size_t waiting() const;

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
  using Lock = std::unique_lock<std::mutex>;

  void push(TaskClass task_class, double rank, std::function<void()> work);
  bool task_waits() const { return !queue_.empty() && failure_ == nullptr; }
  bool complete() const {
    return busy_ == 0 && !task_waits() && (!held_ || failure_ != nullptr);
  }
  // Finds a thread for a task that waits: one that sleeps, or a new one. Unlocks meanwhile.
  void find_thread(Lock& lock);
  void start_worker(Lock& lock);
  void run_next(Lock& lock);
  void run_task(Task task, Lock& lock);
  void no_longer_busy();
  void work();

  const int lower_priority_;
  const std::function<void()> on_refusal_;

  mutable std::mutex mutex_;  // for all that follows
  std::size_t most_workers_, started_ = 0;
  std::vector<std::thread> workers_;
  std::vector<Task> queue_;  // a heap
  std::uint64_t order_ = 0;
  // Threads that run a task or start a thread.
  int busy_ = 0;
  bool held_ = false, starting_ = false, ending_ = false;
  std::exception_ptr failure_;
  // Workers that sleep, and how many of them are to wake; the thread in `run` likewise.
  std::size_t sleeping_ = 0, to_wake_ = 0;
  bool runner_sleeps_ = false, runner_to_wake_ = false;
  std::condition_variable worker_wakes_, runner_wakes_;
};

/// Calls `work` with 0 to `count` - 1, on at most `threads` threads at once; what it throws first
/// comes out.
void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace hmmjit
