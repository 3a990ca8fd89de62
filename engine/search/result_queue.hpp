// Delivers the results of finished models to the sink, in the order of the models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/mutex.hpp"
#include "search/model_job.hpp"
#include "search/search_tasks.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class ResultQueue {
 public:
  /// `budget`: bytes of results that wait.
  ResultQueue(SearchContext& search, ResultSink& sink, std::uint64_t budget)
      : search_(search), sink_(sink), budget_(budget) {}

  /// A model ended with this error: the results before it are delivered, then the search ends.
  void fail(std::size_t index, Error error) HMMJIT_EXCLUDES(mutex_);
  /// Reserves room for a result whose text is still to be made; false where there is none. Always
  /// true with `needed`.
  bool reserve(std::size_t bytes, bool needed) HMMJIT_EXCLUDES(mutex_);
  void unreserve(std::size_t bytes) HMMJIT_EXCLUDES(mutex_);
  /// Adds a complete result of `bytes`, for which `reserved` bytes were reserved.
  void add(ModelResult&& result, std::size_t bytes, std::size_t reserved) HMMJIT_EXCLUDES(mutex_);
  /// Passes results to the sink as far as they are complete in order, on one thread at a time.
  /// Returns whether there was one.
  bool deliver() HMMJIT_EXCLUDES(mutex_);
  /// Whether too many bytes wait.
  bool full() const HMMJIT_EXCLUDES(mutex_);
  bool empty() const HMMJIT_EXCLUDES(mutex_);
  /// The sums over all delivered results. Only once no thread delivers any more.
  void add_to(SearchStatistics& statistics) const HMMJIT_EXCLUDES(mutex_);

 private:
  struct Done {
    ModelResult result;
    std::size_t bytes;
  };
  struct Delivered {
    FilterCounters counters;
    std::uint64_t hits = 0, domains = 0;
    double seconds = 0;
  };
  // Calls the sink, without the lock.
  Status hand_over(const ModelResult& result, Delivered& sums) HMMJIT_EXCLUDES(mutex_);

  SearchContext& search_;
  ResultSink& sink_;
  const std::uint64_t budget_;

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
