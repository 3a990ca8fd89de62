// Filters on the threads of the host: ranges of blocks that no device has, and the rest of the
// filters' work where a device has done the first part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/model_job.hpp"
#include "search/result_maker.hpp"
#include "search/scorer.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// A device's findings for a block: all of them, or a part that is delivered early.
struct DeviceUnit {
  TargetsPtr targets;
  gpu::FilteredBlock filtered;
  std::uint64_t cells = 0;  // left of what passed
};

/// Thread-safe, without a lock of its own.
class FilterTasks {
 public:
  FilterTasks(const SearchOptions& options, SearchTasks& tasks, ThreadStates& threads,
              Scorer& scorer, Verifier& verifier, ScoringLoad& load, ResultMaker& results,
              SearchControl& control)
      : task_cells_(options.task_cells),
        tasks_(tasks),
        threads_(threads),
        scorer_(scorer),
        verifier_(verifier),
        load_(load),
        results_(results),
        control_(control) {}

  /// Filters a block in tasks.
  void submit(const JobPtr& job, const TargetsPtr& targets);
  /// Filters a block at once, on the calling thread.
  void filter_now(const JobPtr& job, const TargetsPtr& targets);
  /// Continues with a device's findings. Each unit has held the job once. `early`: the rest of
  /// these blocks comes later.
  void submit_delivered(const JobPtr& job, std::vector<DeviceUnit> delivered, bool early);
  /// Notes the end of a filter task, of the input, or of a hold.
  void end_filter(const JobPtr& job);
  /// Tasks that have not been begun.
  std::uint64_t waiting() const { return waiting_; }

 private:
  void filter(const JobPtr& job, const TargetsPtr& targets, std::size_t begin, std::size_t end);
  void filter_delivered(const JobPtr& job, const std::vector<DeviceUnit>& units, bool early);
  FilterOutput& cleared_output();

  const std::uint64_t task_cells_;
  SearchTasks& tasks_;
  ThreadStates& threads_;
  Scorer& scorer_;
  Verifier& verifier_;
  ScoringLoad& load_;
  ResultMaker& results_;
  SearchControl& control_;
  std::atomic<std::uint64_t> waiting_{0};
};

}  // namespace hmmjit::search_run
