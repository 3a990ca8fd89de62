// The hits of models that are being searched: in memory, or on disk where there are too many in
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/model_job.hpp"
#include "search/result_queue.hpp"

namespace hmmjit::search_run {

/// Bytes of hits in memory.
std::size_t hit_bytes(const std::vector<Hit>& hits);

/// Thread-safe.
class KeptHits {
 public:
  /// `may_store`: the sink takes stored hits. `budget`: bytes of all results; hits that are kept
  /// have half of it. `jobs`: that are in flight, about.
  KeptHits(const SearchOptions& options, bool may_store, std::uint64_t budget, std::uint64_t jobs)
      : options_(options), may_store_(may_store), budget_(budget), jobs_(jobs) {}

  /// Adds to the hits of a job. Fails with kOutput.
  Status add(ModelJob& job, std::vector<Hit>& hits);
  /// Stops counting the hits of `job.hits`, which have been removed from it.
  void forget(ModelJob& job) HMMJIT_REQUIRES(job.mutex);
  struct Judged {
    HitList list;
    std::shared_ptr<StoredHits> stored = {};  ///< where `list` has only the sums
    std::size_t reserved = 0;                 ///< bytes set aside in the queue for hits and text
  };
  /// All hits of a job that has ended, sorted and judged; stored where there is no room in the
  /// queue for a result of that size. `hits`: the last of them, which have been taken from the job.
  /// Fails with kOutput, and with kInternal where a target is there twice, which stored hits tell
  /// when they are read.
  Result<Judged> judge(ModelJob& job, std::vector<Hit>& hits, ResultQueue& queue);

 private:
  Status store(ModelJob& job, std::vector<Hit>& hits) HMMJIT_REQUIRES(job.storing);

  const SearchOptions& options_;
  const bool may_store_;
  const std::uint64_t budget_, jobs_;
  std::atomic<std::uint64_t> bytes_{0};  // in memory, of jobs that go on
};

}  // namespace hmmjit::search_run
