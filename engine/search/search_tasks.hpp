// The tasks of one search, which its first error ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/mutex.hpp"
#include "core/task_pool.hpp"
#include "core/threads.hpp"
#include "gpu/handover_policy.hpp"
#include "search/host_filters.hpp"
#include "search/model_job.hpp"
#include "search/options.hpp"

namespace hmmjit::search_run {

/// Thread-safe but for `run` and `discard`, which are called one after the other.
class SearchTasks {
 public:
  /// `held`: the pool stays open for device threads until release().
  SearchTasks(const SearchOptions& options, bool held);

  /// Runs `first` and every task submitted from it on. Afterwards the search is stopped, so that
  /// whatever ends later starts no task.
  void run(const std::function<void()>& first);
  /// Destroys tasks that were never begun, with everything they hold.
  void discard() { pool_.reset(); }
  void release() {
    if (held_) pool_->release();
  }

  /// An exception of a task, such as std::bad_alloc, ends the search. Once the caller has cancelled
  /// the search, no task does any work.
  template <typename Work>
  void submit(TaskClass task_class, double rank, Work&& work) {
    pool_->submit(task_class, rank, [this, work = std::forward<Work>(work)] {
      if (options_.cancelled && !stopped() && options_.cancelled())
        abort({ErrorCode::kInterrupted, "the search was cancelled", {}, {}});
      work();
    });
  }
  /// Calls `work`; if memory runs out, the search ends.
  template <typename Work>
  void guarded(Work&& work) noexcept {
    try {
      work();
    } catch (const std::bad_alloc&) {
      abort({ErrorCode::kResources, "out of memory", {}, {}});
    }
  }

  /// True once the search has ended, for whatever reason: tasks then only release what they hold.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Ends the search. The first error is the one that the search returns.
  void abort(Error error) HMMJIT_EXCLUDES(mutex_);
  std::optional<Error> error() const HMMJIT_EXCLUDES(mutex_);

  int threads() const { return pool_->threads(); }
  std::size_t waiting() const { return pool_->waiting(); }
  /// A span of the CPU's timeline that ends now.
  void trace(const char* name, double begun) const {
    if (options_.trace != nullptr) options_.trace->add("cpu", name, begun, now_seconds());
  }

 private:
  void warn_of_threads() const;

  const SearchOptions& options_;
  const bool held_;
  std::atomic<bool> stopped_{false};
  mutable Mutex mutex_;
  std::optional<Error> error_ HMMJIT_GUARDED_BY(mutex_);
  std::unique_ptr<TaskPool> pool_;
};

/// The scoring work that waits (targets that passed the filters), and the rate at which it is done.
/// Thread-safe.
class ScoringLoad {
 public:
  /// Adds targets that passed the filters, or takes back dropped ones: about so many cells to
  /// score.
  void found(std::uint64_t cells) { left_ += cells; }
  void dropped(std::uint64_t cells) { left_ -= cells; }
  /// Targets have been scored, which took a thread so many seconds.
  void scored(std::uint64_t cells, double seconds) {
    left_ -= cells;
    done_ += cells;
    microseconds_ += static_cast<std::uint64_t>(1e6 * seconds);
  }
  /// The load of a pool with so many threads and so many tasks that wait.
  gpu::HostLoad host_load(std::size_t threads, std::size_t waiting) const {
    const std::uint64_t done = done_;
    const double seconds =
        done > 0 ? 1e-6 * static_cast<double>(microseconds_.load()) / static_cast<double>(done)
                 : kFirstCellSeconds;
    const double cell_seconds = seconds / static_cast<double>(threads);
    return {.seconds_left = cell_seconds * static_cast<double>(left_),
            .waiting = waiting,
            .threads = threads,
            .cell_seconds = cell_seconds};
  }

 private:
  // Assumed seconds of a thread for a cell, until the first have been scored.
  static constexpr double kFirstCellSeconds = 4e-9;

  std::atomic<std::uint64_t> left_{0}, done_{0}, microseconds_{0};
};

/// What all steps of a search share.
struct SearchContext {
  /// `held`: see SearchTasks.
  SearchContext(const SearchOptions& o, SearchProgress& p, bool held)
      : options(o), progress(p), tasks(o, held) {}

  const SearchOptions& options;
  SearchProgress& progress;
  ThreadStates threads;
  SearchTasks tasks;
  ScoringLoad load;
};

}  // namespace hmmjit::search_run
