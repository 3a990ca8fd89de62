// Decides who does a pair of a model and a block: threads of the host at once or, where there is a
// device, whichever of the two is free first.
#pragma once

#include <cstddef>
#include <map>

#include "core/mutex.hpp"
#include "search/filter_tasks.hpp"
#include "search/model_job.hpp"
#include "search/search_tasks.hpp"
#include "work/work_board.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class PairDispatcher {
 public:
  /// `device`: null where there is none; then the board stays empty.
  PairDispatcher(SearchTasks& tasks, gpu::GpuFilters* device, FilterTasks& filters,
                 SearchProgress& progress)
      : tasks_(tasks), device_(device), filters_(filters), progress_(progress) {}

  // A model that devices may take part in, before the first pair of it and after the last.
  void add_model(const JobPtr& job) HMMJIT_EXCLUDES(mutex_);
  void remove_model(const ModelJob& job) HMMJIT_EXCLUDES(mutex_);
  // A block that devices may be given, before the first pair of it; once it is gone.
  void add_block(BlockId block);
  void remove_block(BlockId block);
  /// The pair is to be done.
  void submit(const JobPtr& job, const BlockPtr& block);
  /// Null where devices do not know the model.
  JobPtr find(ModelId model) const HMMJIT_EXCLUDES(mutex_);

  WorkBoard& board() { return board_; }

 private:
  // A thread looks at one pair on the board: unless a device has claimed it or will.
  void submit_look(const JobPtr& job, BlockId block);
  void look(const JobPtr& job, BlockId block);
  // From the board: devices leave the pair to the threads.
  void left_to_host(ModelId model, BlockId block) noexcept;

  SearchTasks& tasks_;
  gpu::GpuFilters* const device_;
  FilterTasks& filters_;
  SearchProgress& progress_;
  mutable Mutex mutex_;
  std::map<ModelId, JobPtr> jobs_ HMMJIT_GUARDED_BY(mutex_);  // nobody else may hold them
  // Which pairs of those models are still to be done.
  WorkBoard board_{[this](ModelId model, BlockId block) { left_to_host(model, block); }};
};

}  // namespace hmmjit::search_run
