// Reads the targets of a search in blocks, and keeps them while they fit. Otherwise they are read
// once for each batch of models.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "search/filter_tasks.hpp"
#include "search/model_input.hpp"
#include "search/model_job.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/scorer.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"

namespace hmmjit::search_run {

/// Thread-safe. One task reads at a time; the window says whether it may.
class TargetFeed final : public BlockOwner {
 public:
  TargetFeed(SearchContext& search, TargetSource& input, std::size_t block_residues,
             SearchWindow& window, gpu::GpuFilters* device, PairDispatcher& pairs,
             FilterTasks& filters, Scorer& scorer, ModelInput& models, SearchControl& control)
      : search_(search),
        input_(&input),
        block_residues_(block_residues),
        window_(window),
        device_(device),
        pairs_(pairs),
        filters_(filters),
        scorer_(scorer),
        models_(models),
        control_(control) {}

  /// Starts the reading task unless it runs, or waits for memory, or there is nothing to read.
  void resume();
  /// The batch of models is complete: reads the targets for it.
  void begin_batch();
  /// If a batch has been searched against all targets, reads them again for the next one.
  void next_pass();
  void block_released(BlockId block, std::size_t bytes) noexcept override;
  /// Must not be called while tasks run.
  void add_to(SearchStatistics& statistics) const;

 private:
  // Decompresses ahead of the reading task, as a task of its own, so that no more threads are busy
  // than the user allows. A single thread decompresses as it reads.
  void decode_ahead();
  void read();
  // False when reading must pause, or the search has ended.
  bool add_block(BlockPtr block);
  Status count(const TargetBlock& targets);
  void end_of_targets();

  SearchContext& search_;
  TargetSource* input_;  // the caller's, or the spool
  const std::size_t block_residues_;
  SearchWindow& window_;
  gpu::GpuFilters* const device_;
  PairDispatcher& pairs_;
  FilterTasks& filters_;
  Scorer& scorer_;
  ModelInput& models_;
  SearchControl& control_;
  std::atomic<bool> decoding_ahead_{false};

  // Used by the task that reads, begins a batch or begins a pass: one at a time.
  std::unique_ptr<BlockSpool> spool_;
  std::uint64_t passes_ = 1, blocks_ = 0, targets_ = 0, residues_ = 0, bytes_read_ = 0;
  bool streamed_ = false, spooled_ = false;
  double read_seconds_ = 0;
};

}  // namespace hmmjit::search_run
