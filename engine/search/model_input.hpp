// The models of a search, in the order of their input, and their preparation.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "core/mutex.hpp"
#include "search/model_job.hpp"
#include "search/search.hpp"

namespace hmmjit::search_run {

/// Reads one model at a time, on the calling thread. Thread-safe.
class ModelInput {
 public:
  explicit ModelInput(const ModelSource& source) : source_(source) {}
  /// The next model and its index; nullopt at the end. An error is final.
  Result<std::optional<Query>> next(std::size_t& index) HMMJIT_EXCLUDES(mutex_);
  /// Whether a further model exists. An error counts as one: `next` returns it.
  bool has_more() HMMJIT_EXCLUDES(mutex_);
  /// The source, which had no further model, may have one now. Does not wait for the source.
  void reopen() { reopened_ = true; }

 private:
  using Read = Result<std::optional<Query>>;
  // Reads ahead if nothing has been: a model, the end or an error, which both stay.
  Read& peek() HMMJIT_REQUIRES(mutex_);

  const ModelSource& source_;
  std::atomic<bool> reopened_ = false;
  Mutex mutex_;
  std::size_t next_index_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::optional<Read> read_ HMMJIT_GUARDED_BY(mutex_);
};

/// Calibrates a model that has no score statistics, and makes its profiles and tables. `begun`:
/// when its set-up began; see Trace::now.
Result<JobPtr> set_up(Query query, std::size_t index, const SearchOptions& options, double begun);

}  // namespace hmmjit::search_run
