#include "search/target_input.hpp"

#include <utility>

#include "core/threads.hpp"

namespace hmmjit::search_run {

Result<std::optional<TargetBlock>> TargetInput::next() {
  TargetBlock targets;
  const double used = thread_seconds();
  const auto more = input_->next(targets, block_residues_);
  if (more && *more) targets.shrink_to_fit();
  read_seconds_ += thread_seconds() - used;
  progress_.target_bytes_read = input_->bytes_read();
  progress_.target_bytes_total = input_->bytes_total();
  if (!more) return std::unexpected(more.error());
  if (!*more) {
    if (passes_ == 1) bytes_read_ = input_->bytes_read();
    progress_.targets_complete = true;
    return std::nullopt;
  }
  HMMJIT_TRY(count(targets));
  return targets;
}

Status TargetInput::count(const TargetBlock& targets) {
  if (passes_ > 1) return {};
  ++blocks_;
  targets_ += targets.size();
  residues_ += targets.residue_count();
  progress_.targets = targets_;
  progress_.residues = residues_;
  return spool_ ? spool_->append(targets) : Status{};
}

Status TargetInput::copy(const std::vector<BlockPtr>& blocks) {
  HMMJIT_ASSIGN(spool_, BlockSpool::create());
  for (const BlockPtr& block : blocks) HMMJIT_TRY(spool_->append(block->targets));
  return {};
}

Status TargetInput::rewind() {
  if (spool_) input_ = spool_.get();
  HMMJIT_TRY(input_->rewind());
  ++passes_;
  return {};
}

void TargetInput::add_to(SearchStatistics& statistics) const {
  statistics.passes = passes_;
  statistics.blocks = blocks_;
  statistics.targets = targets_;
  statistics.residues = residues_;
  statistics.bytes_read = bytes_read_;
  statistics.spooled = spool_ != nullptr;
  statistics.read_seconds += read_seconds_;
}

}  // namespace hmmjit::search_run
