// The targets of a search, read in blocks, once or for each batch of models.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "search/model_job.hpp"
#include "search/search.hpp"
#include "search/target_source.hpp"

namespace hmmjit::search_run {

/// For one thread at a time, except for read_ahead().
class TargetInput {
 public:
  /// `statistics`: it counts what it reads there.
  TargetInput(TargetSource& source, std::size_t block_residues, SearchProgress& progress,
              SearchStatistics& statistics)
      : source_(source),
        block_residues_(block_residues),
        progress_(progress),
        statistics_(statistics) {}

  /// The next block; nullopt at the end.
  Result<std::optional<TargetBlock>> next();
  /// See TargetSource.
  int read_ahead_threads() const { return input_->read_ahead_threads(); }
  bool read_ahead() { return source_.read_ahead(); }
  /// Whether a second pass needs a copy of the targets.
  bool needs_copy() const { return statistics_.passes == 1 && !input_->rewindable() && !spool_; }
  /// Copies these blocks, and from now on those that are read.
  Status copy(const std::vector<BlockPtr>& blocks);
  /// Starts again at the first target.
  Status rewind();

 private:
  Status count(const TargetBlock& targets);

  TargetSource& source_;
  const std::size_t block_residues_;
  SearchProgress& progress_;
  SearchStatistics& statistics_;
  std::unique_ptr<BlockSpool> spool_;
  TargetSource* input_ = &source_;  // or the spool
};

}  // namespace hmmjit::search_run
