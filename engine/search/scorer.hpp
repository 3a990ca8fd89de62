// Scores targets that passed the filters on the threads of the host: Forward and the domain stage,
// many targets at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "search/kept_hits.hpp"
#include "search/memory_shares.hpp"
#include "search/model_job.hpp"
#include "search/result_maker.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class Scorer {
 public:
  /// `shared`, `alone`: for a thread among others, and for one that scores alone. `beside_device`:
  /// a device leaves targets to all threads at once.
  Scorer(const SearchOptions& options, SearchTasks& tasks, ThreadStates& threads,
         const domain::DomainOptions& shared, const domain::DomainOptions& alone,
         bool beside_device, Verifier& verifier, KeptHits& hits, ScoringLoad& load,
         ResultMaker& results, SearchProgress& progress)
      : options_(options),
        tasks_(tasks),
        threads_(threads),
        shared_(shared),
        alone_(alone),
        beside_device_(beside_device),
        verifier_(verifier),
        hits_(hits),
        load_(load),
        results_(results),
        progress_(progress) {}

  /// Takes the survivors of a part of a block; they wait.
  void add(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output);
  /// Begins to score the waiting targets of a model if there are `enough` of them.
  void submit_waiting(const JobPtr& job, std::size_t enough = 1);
  /// From now on targets do not wait for others, since they keep blocks in memory that are to be
  /// freed.
  void stop_collecting() { collecting_ = false; }
  /// Targets that share work, and as many as are worth waiting for while threads are busy.
  static constexpr std::size_t kSmallestBatch = 8, kLargestBatch = 64;
  /// Batches with a matrix beyond a thread's share of the memory.
  std::uint64_t scored_alone() const { return scored_alone_; }

 private:
  void submit(const JobPtr& job, std::vector<WaitingTarget> targets);
  void score(const JobPtr& job, const std::vector<WaitingTarget>& batch);
  // The scores of a batch into `local`.
  Status compute(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                 const domain::WantedTarget& wanted);
  // The same after a thread's share of the memory was too small.
  Status compute_alone(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) HMMJIT_EXCLUDES(alone_mutex_);

  const SearchOptions& options_;
  SearchTasks& tasks_;
  ThreadStates& threads_;
  const domain::DomainOptions& shared_;
  const domain::DomainOptions& alone_;
  const bool beside_device_;
  Verifier& verifier_;
  KeptHits& hits_;
  ScoringLoad& load_;
  ResultMaker& results_;
  SearchProgress& progress_;
  std::atomic<bool> collecting_{true};
  std::atomic<std::uint64_t> scored_alone_{0};
  Mutex alone_mutex_;  // held by the thread that scores alone
};

}  // namespace hmmjit::search_run
