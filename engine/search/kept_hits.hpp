// The hits of models in flight: in memory, or on disk if there are too many in all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "search/model_job.hpp"

namespace hmmjit {
class HitSource;
}

namespace hmmjit::search_run {

std::size_t hit_bytes(const std::vector<Hit>& hits);

/// Thread-safe.
class KeptHits {
 public:
  /// `may_store`: the sink accepts stored hits. `budget`: bytes of all results; hits of models in
  /// flight may take half of it. `jobs`: expected number of models in flight.
  KeptHits(const SearchOptions& options, bool may_store, std::uint64_t budget, std::uint64_t jobs)
      : options_(options), may_store_(may_store), budget_(budget), jobs_(jobs) {}

  /// Adds to the hits of a job. Fails with kOutput.
  Status add(ModelJob& job, std::vector<Hit>& hits);
  /// The hits of `job.hits` have been removed and no longer count.
  void forget(ModelJob& job) HMMJIT_REQUIRES(job.mutex);
  struct Judged {
    HitList list;
    std::shared_ptr<HitSource> stored = {};  ///< where `list` has only the totals
    std::size_t reserved = 0;                ///< bytes reserved on the agenda for hits and text
  };
  /// All hits of a finished job, sorted and judged; stored if the agenda has no room for a result
  /// of that size. `hits`: the last of them, taken from the job. Fails with kOutput, and with
  /// kInternal if a target occurs twice, which stored hits report when they are read.
  Result<Judged> judge(ModelJob& job, std::vector<Hit>& hits, Agenda& agenda);

 private:
  Status store(ModelJob& job, std::vector<Hit>& hits) HMMJIT_REQUIRES(job.storing);

  const SearchOptions& options_;
  const bool may_store_;
  const std::uint64_t budget_, jobs_;
  std::atomic<std::uint64_t> bytes_{0};  // in memory, of jobs in flight
};

}  // namespace hmmjit::search_run
