// Scores targets that passed the filters on the worker threads: Forward and the domain stage, in
// batches.
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
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class Scorer {
 public:
  /// `shared`, `alone`: limits of a thread among others, and of one that scores alone.
  /// `beside_device`: a device takes part, whose last targets reach all threads at once.
  Scorer(SearchContext& search, const domain::DomainOptions& shared,
         const domain::DomainOptions& alone, bool beside_device, Verifier& verifier, KeptHits& hits,
         ResultMaker& results)
      : search_(search),
        shared_(shared),
        alone_(alone),
        beside_device_(beside_device),
        verifier_(verifier),
        hits_(hits),
        results_(results) {}

  /// Adds the survivors of a part of a block to the waiting targets.
  void add(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output);
  /// Scores the waiting targets of a model if there are at least `enough`.
  void submit_waiting(const JobPtr& job, std::size_t enough = 1);
  /// From now on targets do not wait for others: they would keep blocks in memory.
  void stop_collecting() { collecting_ = false; }
  /// The smallest batch whose targets share work, and the largest worth waiting for.
  static constexpr std::size_t kSmallestBatch = 8, kLargestBatch = 64;
  /// Batches whose matrix exceeded a thread's share of the memory.
  std::uint64_t scored_alone() const { return scored_alone_; }

 private:
  void submit(const JobPtr& job, std::vector<WaitingTarget> targets);
  void score(const JobPtr& job, const std::vector<WaitingTarget>& batch);
  // Stores the scores of a batch in `local`.
  Status compute(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                 const domain::WantedTarget& wanted);
  // The same, where a thread's share of the memory is too small.
  Status compute_alone(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) HMMJIT_EXCLUDES(alone_mutex_);

  SearchContext& search_;
  const domain::DomainOptions& shared_;
  const domain::DomainOptions& alone_;
  const bool beside_device_;
  Verifier& verifier_;
  KeptHits& hits_;
  ResultMaker& results_;
  std::atomic<bool> collecting_{true};
  std::atomic<std::uint64_t> scored_alone_{0};
  Mutex alone_mutex_;  // held by the thread that scores alone
};

}  // namespace hmmjit::search_run
