// Delivers the results of finished models to the sink, in the order of the models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "search/distrusted_kernels.hpp"
#include "search/model_job.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class ResultQueue {
 public:
  /// `budget`: bytes of results that wait. `hold_back`: results stay here as long as memory allows,
  /// since a device could still turn out to have computed wrong scores.
  ResultQueue(SearchTasks& tasks, SearchWindow& window, DistrustedKernels& distrusted,
              ResultSink& sink, SearchProgress& progress, std::uint64_t budget, bool hold_back)
      : tasks_(tasks),
        window_(window),
        distrusted_(distrusted),
        sink_(sink),
        progress_(progress),
        budget_(budget),
        hold_back_(hold_back) {}

  /// A model ended with this error: the results before it are delivered, then the search ends.
  void fail(std::size_t index, Error error) HMMJIT_EXCLUDES(mutex_);
  /// Reserves room for a result whose text is still to be made; false where there is none. Always
  /// true with `needed`.
  bool reserve(std::size_t bytes, bool needed) HMMJIT_EXCLUDES(mutex_);
  void unreserve(std::size_t bytes) HMMJIT_EXCLUDES(mutex_);
  /// A complete result of `bytes`, for which `reserved` were set aside. Where one of the kernels it
  /// was made with is known to be wrong, it is dropped, and the model comes back.
  std::optional<Again> add(ModelResult&& result, std::size_t bytes, std::size_t reserved,
                           Retained&& retained) HMMJIT_EXCLUDES(mutex_);
  /// Hands results to the sink as far as they are complete in order, on one thread at a time.
  /// Whether there was one.
  bool deliver() HMMJIT_EXCLUDES(mutex_);
  /// Removes the results that wrong kernels were used for: their models are to be searched again.
  std::vector<Again> take_back() HMMJIT_EXCLUDES(mutex_);
  /// Whether too many bytes wait.
  bool full() const HMMJIT_EXCLUDES(mutex_);
  bool empty() const HMMJIT_EXCLUDES(mutex_);
  /// The sums over all delivered results. Only once no thread delivers any more.
  void add_to(SearchStatistics& statistics) const HMMJIT_EXCLUDES(mutex_);

 private:
  struct Done {
    ModelResult result;
    std::size_t bytes;
    Retained retained;
  };
  struct Delivered {
    FilterCounters counters;
    std::uint64_t hits = 0, domains = 0;
    double seconds = 0;
  };
  // Removes and returns the result that is next in order, if it is complete and may be delivered.
  std::optional<Done> take_next() HMMJIT_REQUIRES(mutex_);
  bool holds_back() const HMMJIT_REQUIRES(mutex_);
  // Calls the sink, without the lock.
  Status hand_over(const ModelResult& result, Delivered& sums) HMMJIT_EXCLUDES(mutex_);

  SearchTasks& tasks_;
  SearchWindow& window_;           // locked within this lock
  DistrustedKernels& distrusted_;  // locked within this lock, too
  ResultSink& sink_;
  SearchProgress& progress_;
  const std::uint64_t budget_;
  const bool hold_back_;

  mutable Mutex mutex_;
  std::map<std::size_t, Done> done_ HMMJIT_GUARDED_BY(mutex_);
  std::optional<std::pair<std::size_t, Error>> failed_ HMMJIT_GUARDED_BY(mutex_);
  // Bytes of results that are complete, and of those whose text is being made.
  std::size_t waiting_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::size_t reserved_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::size_t next_ HMMJIT_GUARDED_BY(mutex_) = 0;
  bool delivering_ HMMJIT_GUARDED_BY(mutex_) = false;
  Delivered delivered_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::search_run
