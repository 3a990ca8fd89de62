// Decides who filters a pair of a model and a block: the worker threads or, if there is a device,
// whichever of the two is free first.
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
  /// `device`: may be null; then the board stays empty.
  PairDispatcher(SearchContext& search, gpu::GpuFilters* device, FilterTasks& filters)
      : search_(search), device_(device), filters_(filters) {}

  // Tell devices of a model, before its first pair and after its last.
  void add_model(const JobPtr& job) HMMJIT_EXCLUDES(mutex_);
  void remove_model(const ModelJob& job) HMMJIT_EXCLUDES(mutex_);
  // Tell the board of a block, before its first pair and once it has been released.
  void add_block(BlockId block);
  void remove_block(BlockId block);
  /// Opens a pair.
  void submit(const JobPtr& job, const BlockPtr& block);
  /// Null where devices do not know the model.
  JobPtr find(ModelId model) const HMMJIT_EXCLUDES(mutex_);

  WorkBoard& board() { return board_; }

 private:
  // A task takes the pair from the board unless a device has claimed it or will claim it.
  void submit_look(const JobPtr& job, BlockId block);
  void look(const JobPtr& job, BlockId block);
  // Called by the board: no device will do the pair.
  void left_to_host(ModelId model, BlockId block) noexcept;

  SearchContext& search_;
  gpu::GpuFilters* const device_;
  FilterTasks& filters_;
  mutable Mutex mutex_;
  std::map<ModelId, JobPtr> jobs_ HMMJIT_GUARDED_BY(mutex_);  // perhaps the only reference
  // The pairs of those models that are still to be done.
  WorkBoard board_{[this](ModelId model, BlockId block) { left_to_host(model, block); }};
};

}  // namespace hmmjit::search_run
