#include "search/target_input.hpp"

#include "core/threads.hpp"

namespace hmmjit::search_run {

Result<std::optional<TargetBlock>> TargetInput::next() {
  TargetBlock targets;
  const double used = thread_seconds();
  const auto more = input_->next(targets, block_residues_);
  if (more && *more) targets.finish();
  statistics_.read_seconds += thread_seconds() - used;
  progress_.target_bytes_read = input_->bytes_read();
  progress_.target_bytes_total = input_->bytes_total();
  if (!more) return std::unexpected(more.error());
  if (!*more) {
    statistics_.bytes_read += input_->bytes_read();
    progress_.targets_complete = !input_->is_batch();
    return std::nullopt;
  }
  HMMJIT_TRY(count(targets));
  return targets;
}

Status TargetInput::count(const TargetBlock& targets) {
  if (statistics_.passes > 1) return {};
  ++statistics_.blocks;
  statistics_.targets += targets.size();
  statistics_.residues += targets.residue_count();
  progress_.targets += targets.size();
  progress_.residues += targets.residue_count();
  return spool_ ? spool_->append(targets) : Status{};
}

Status TargetInput::copy(const std::vector<BlockPtr>& blocks) {
  HMMJIT_ASSIGN(spool_, BlockSpool::create());
  statistics_.spooled = true;
  for (const BlockPtr& block : blocks) HMMJIT_TRY(spool_->append(block->targets));
  return {};
}

Status TargetInput::rewind() {
  if (spool_) input_ = spool_.get();
  HMMJIT_TRY(input_->rewind());
  ++statistics_.passes;
  return {};
}

}  // namespace hmmjit::search_run
