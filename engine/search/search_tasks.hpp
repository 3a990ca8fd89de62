// The tasks of one search, which its first error ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/mutex.hpp"
#include "core/threads.hpp"
#include "search/filter_backend.hpp"
#include "search/options.hpp"
#include "search/task_pool.hpp"

namespace hmmjit::search_run {

/// Thread-safe but for `run` and `discard`, which are called one after the other.
class SearchTasks {
 public:
  /// `held`: until `release`, threads outside may submit tasks as well.
  SearchTasks(const SearchOptions& options, bool held);

  /// Runs `first` and every task submitted from it on. Afterwards the search is stopped, so that
  /// whatever ends later starts no task.
  void run(const std::function<void()>& first);
  /// Destroys tasks that were never begun, with everything they hold.
  void discard() { pool_.reset(); }
  void release() {
    if (held_) pool_->release();
  }

  /// A task that runs out of memory ends the search. Once the caller has cancelled the search, no
  /// task does any work.
  template <typename Work>
  void submit(TaskClass task_class, double rank, Work&& work) {
    pool_->submit(task_class, rank, [this, work = std::forward<Work>(work)] {
      guarded([&] {
        if (options_.cancelled && !stopped() && options_.cancelled())
          abort({ErrorCode::kInterrupted, "the search was cancelled", {}, {}});
        work();
      });
    });
  }
  /// Calls `work` for a thread of a device; if it runs out of memory, the search ends.
  template <typename Work>
  void guarded(Work&& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      abort_out_of_memory();
    }
  }

  /// True once the search has ended, for whatever reason: tasks then only release what they hold.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Ends the search. The first error is the one that the search returns.
  void abort(Error error) HMMJIT_EXCLUDES(mutex_);
  /// The same without an allocation.
  void abort_out_of_memory() noexcept HMMJIT_EXCLUDES(mutex_);
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
  Error out_of_memory_ HMMJIT_GUARDED_BY(mutex_){
      ErrorCode::kResources, "out of memory", {}, "use fewer threads (--cpu) or split the input"};
  std::unique_ptr<TaskPool> pool_;
};

}  // namespace hmmjit::search_run
