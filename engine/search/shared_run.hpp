// One run of the search pipeline for several searches of the same resident targets: their models
// take turns, as those of one library do. A search may join until the run ends, and ends with its
// last result or when it is cancelled, whatever the others do.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "core/mutex.hpp"
#include "search/search.hpp"

namespace hmmjit::search_run {

/// A search in a run, and the sink of its results there. Nothing that its caller gave it is used
/// once wait() has returned. Thread-safe.
class SharedSearch final : public ResultSink {
 public:
  SharedSearch(const SearchOptions& options, const ModelSource& models, ResultSink& sink,
               SearchProgress& progress);
  /// Waits for the end of the search, or its cancellation, once. Rethrows what its models or its
  /// sink have thrown.
  Result<SearchStatistics> wait();

  // ---- of the run ------------------------------------------------------------------------------

  /// There are other searches in the run: this one ends without waiting for the run.
  void share() HMMJIT_EXCLUDES(mutex_);
  bool ended() const { return ended_; }
  /// The first outcome counts.
  void end(Result<SearchStatistics> outcome) const;
  void end(std::exception_ptr thrown) const;
  bool has_models() const HMMJIT_EXCLUDES(mutex_);
  /// The next model, if there is one.
  std::optional<Query> next_model();
  /// Passes on the progress of the run since the search joined it.
  void show(const SearchProgress& run);
  void warn(const Error& warning) const;

  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override;
  void make(PreparedResult& prepared, std::size_t part) const override;
  Status receive(const ModelResult& result) override;
  bool take_error(std::size_t index, const Error& error) override;
  bool takes_stored_hits() const override { return takes_stored_hits_; }

 private:
  // Calls `use` unless the search has ended. What it throws ends the search.
  template <typename Use>
  void with(Use&& use) const;
  void end_if_complete() HMMJIT_EXCLUDES(mutex_);

  // The caller's objects.
  const SearchOptions& options_;
  const ModelSource& models_;
  ResultSink& sink_;
  SearchProgress& progress_;
  const bool takes_stored_hits_;
  const double created_;
  mutable std::shared_mutex uses_;  // of the above; exclusive: wait() returns

  SearchStatistics sums_;  // of its results, which come one at a time
  std::atomic<std::size_t> delivered_{0};
  mutable std::atomic<bool> ended_{false};
  mutable std::promise<Result<SearchStatistics>> outcome_;
  const std::optional<Event> end_;  // if the search can be cancelled
  mutable Mutex mutex_;
  bool shares_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool last_model_read_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::size_t models_read_ HMMJIT_GUARDED_BY(mutex_) = 0;  // before an error
  // The first error of a model: the search ends with it after the models before.
  std::optional<Error> model_error_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> work_before_ HMMJIT_GUARDED_BY(mutex_);  // counters of the run
};

/// The targets that a search can share; null if it needs a run of its own, because it counts or
/// times what the others do as well.
std::shared_ptr<const ResidentTargets> shared_targets(const SearchOptions& options,
                                                      const TargetSource& targets);

/// Thread-safe.
class SharedRun {
 public:
  /// For searches of these targets, with these options except for their callbacks.
  SharedRun(std::shared_ptr<const ResidentTargets> targets, const SearchOptions& options,
            bool takes_stored_hits);
  bool serves(const ResidentTargets& targets, const SearchOptions& options,
              bool takes_stored_hits) const;
  /// Lets a search take part, unless the run has ended or has had its share of searches.
  bool join(const std::shared_ptr<SharedSearch>& search) HMMJIT_EXCLUDES(mutex_);
  /// Searches have joined.
  void announce() { late_models_.announce(); }
  /// A search has ended. Cancels the run once all have.
  void leave() HMMJIT_EXCLUDES(mutex_);
  /// Its callbacks reach the searches.
  const SearchOptions& options() const { return options_; }
  /// Ends all searches, unless it throws. `device`: may be null.
  void run(gpu::GpuFilters* device) HMMJIT_EXCLUDES(mutex_);
  /// Ends all searches with the error of their run, or with the error that prevented it.
  void end(const std::exception_ptr& thrown) HMMJIT_EXCLUDES(mutex_);

 private:
  using Searches = std::vector<std::shared_ptr<SharedSearch>>;

  Searches searches() const HMMJIT_EXCLUDES(mutex_);
  // Unless a search has models, none joins from now on; returns whether that is so.
  bool close_if_done() HMMJIT_EXCLUDES(mutex_);
  // Ends all searches with this outcome; none joins from now on.
  template <typename Outcome>
  void end_all(const Outcome& outcome) HMMJIT_EXCLUDES(mutex_);
  std::optional<Query> next_model() HMMJIT_EXCLUDES(mutex_);

  const std::shared_ptr<const ResidentTargets> targets_;
  const bool takes_stored_hits_;
  Cancellation all_have_ended_;
  SearchOptions options_;
  LateModels late_models_;
  std::optional<SearchProgress> progress_;  // of the thread of the run, and of its workers
  std::size_t turn_ = 0;  // used by one thread at a time
  mutable Mutex mutex_;
  Searches searches_ HMMJIT_GUARDED_BY(mutex_);  // not empty once one has joined
  // Some of those that have ended: their results may still be on their way.
  Searches ended_ HMMJIT_GUARDED_BY(mutex_);
  bool closed_ HMMJIT_GUARDED_BY(mutex_) = false;
};

}  // namespace hmmjit::search_run
