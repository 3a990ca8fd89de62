// Scores a batch of targets that passed the filters: Forward and the domain stage.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// The outcome of a batch.
struct Scored {
  std::vector<Hit> hits;  ///< candidates
  std::uint64_t cells = 0;
  double seconds = 0;  ///< of thread time
};

/// Thread-safe.
class Scorer {
 public:
  /// `shared`, `alone`: limits of a thread among others, and of one that scores alone.
  Scorer(const SearchOptions& options, const domain::DomainOptions& shared,
         const domain::DomainOptions& alone, Verifier& verifier)
      : options_(options), shared_(shared), alone_(alone), verifier_(verifier) {}

  Result<Scored> score(ModelJob& job, const std::vector<WaitingTarget>& batch, ThreadState& local);
  /// Batches whose matrix exceeded a thread's share of the memory.
  std::uint64_t scored_alone() const { return scored_alone_; }

 private:
  // Stores the scores of a batch in `local`.
  Status compute(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                 const domain::WantedTarget& wanted) HMMJIT_EXCLUDES(alone_mutex_);

  const SearchOptions& options_;
  const domain::DomainOptions& shared_;
  const domain::DomainOptions& alone_;
  Verifier& verifier_;
  std::atomic<std::uint64_t> scored_alone_{0};
  Mutex alone_mutex_;  // held by the thread that scores alone
};

}  // namespace hmmjit::search_run
