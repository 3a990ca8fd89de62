// Filters on the worker threads: ranges of blocks that no device has claimed, and the rest of the
// filters' work where a device has done the first part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/model_job.hpp"
#include "search/result_maker.hpp"
#include "search/scorer.hpp"
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// A device's results for a block: all of them, or a part that is delivered early.
struct DeviceUnit {
  TargetsPtr targets;
  gpu::FilteredBlock filtered;
  std::uint64_t cells = 0;  // still to be scored of targets that passed
};

/// Thread-safe, without a lock of its own.
class FilterTasks {
 public:
  FilterTasks(SearchContext& search, Scorer& scorer, Verifier& verifier, ResultMaker& results,
              SearchControl& control)
      : search_(search),
        scorer_(scorer),
        verifier_(verifier),
        results_(results),
        control_(control) {}

  /// Filters a block in tasks.
  void submit(const JobPtr& job, const TargetsPtr& targets);
  /// Filters a block at once, on the calling thread.
  void filter_now(const JobPtr& job, const TargetsPtr& targets);
  /// Continues with a device's results. Each unit has held the job once. `early`: the rest of these
  /// blocks follows.
  void submit_delivered(const JobPtr& job, std::vector<DeviceUnit> delivered, bool early);
  /// A filter task, the input, or a hold has ended.
  void end_filter(const JobPtr& job);
  /// Tasks that have not begun.
  std::uint64_t waiting() const { return waiting_; }

 private:
  void filter(const JobPtr& job, const TargetsPtr& targets, std::size_t begin, std::size_t end);
  void filter_delivered(const JobPtr& job, const std::vector<DeviceUnit>& units, bool early);
  FilterOutput& cleared_output();

  SearchContext& search_;
  Scorer& scorer_;
  Verifier& verifier_;
  ResultMaker& results_;
  SearchControl& control_;
  std::atomic<std::uint64_t> waiting_{0};
};

}  // namespace hmmjit::search_run
