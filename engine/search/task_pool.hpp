// Prioritised tasks on a bounded number of threads.
#pragma once

#include <tbb/concurrent_priority_queue.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace hmmjit {

/// Order in which waiting tasks start: smaller class first, then smaller rank.
enum class TaskClass : std::uint8_t {
  kControl,      ///< reading, model set-up, emission: what others wait for
  kLargeDomain,  ///< large targets, largest first, so that none is begun last
  kDomain,       ///< batches of targets, earliest model first, so that results leave
  kFilter,       ///< filter tasks, earliest model first
};

/// At most `threads` threads run tasks, the one in `run` among them; fewer where the system does
/// not let so many be started, which `threads()` tells. Idle threads take the first task in
/// priority order, whoever submitted it. Tasks may submit tasks and must not wait for one another.
/// Every task runs with flush-to-zero set.
class TaskPool {
 public:
  /// `lower_priority`: see SearchOptions.
  explicit TaskPool(int threads, int lower_priority = 0);
  /// Runs `first` and everything submitted from it on; returns when no task is left. One call at
  /// a time. A std::bad_alloc of any task is rethrown here after the others have ended.
  void run(std::function<void()> first);
  /// Keeps `run` from returning until `release`, so that threads outside may submit meanwhile.
  /// From within tasks.
  void hold();
  /// Thread-safe; without `hold` nothing happens.
  void release();
  /// Thread-safe; from within tasks, or from any thread while held: what comes from outside after
  /// that is dropped.
  void submit(TaskClass task_class, double rank, std::function<void()> work);
  int threads() const { return threads_; }
  /// Tasks that have not been begun, about. Thread-safe.
  std::size_t waiting() const { return queue_.size(); }

 private:
  struct Task {
    TaskClass task_class;
    double rank;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Task& other) const {  // priority_queue: greatest first
      if (task_class != other.task_class) return task_class > other.task_class;
      if (rank != other.rank) return rank > other.rank;
      return order > other.order;
    }
  };
  void run_next();

  int threads_, lower_priority_;
  // Process-wide: set only where the library's own limit would be too low.
  std::optional<tbb::global_control> control_;
  tbb::task_arena arena_;
  tbb::task_group group_;
  std::mutex hold_mutex_;
  tbb::task_handle hold_;  // a task that is never run: `wait` counts it as unfinished
  tbb::concurrent_priority_queue<Task> queue_;
  std::atomic<std::uint64_t> order_{0}, ended_{0};
};

}  // namespace hmmjit
