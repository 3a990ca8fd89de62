#include "search/pair_dispatcher.hpp"

namespace hmmjit::search_run {

void PairDispatcher::add_model(const JobPtr& job) {
  if (device_ == nullptr) return;
  device_->add_model(job->index, job->model);
  const MutexLock lock(mutex_);
  jobs_.emplace(job->index, job);
}

void PairDispatcher::remove_model(const ModelJob& job) {
  if (device_ == nullptr) return;
  device_->remove_model(job.index);
  board_.remove_model(job.index);
  const MutexLock lock(mutex_);
  jobs_.erase(job.index);
}

void PairDispatcher::add_block(BlockId block) {
  if (device_ != nullptr) board_.add_block(block);
}

void PairDispatcher::remove_block(BlockId block) { board_.remove_block(block); }

void PairDispatcher::submit(const JobPtr& job, const BlockPtr& block) {
  search_.progress.cells_queued +=
      block->targets.residue_count() * static_cast<std::uint64_t>(job->model->hmm.M);
  if (device_ == nullptr) return filters_.submit(job, targets_of(block));
  {
    const MutexLock lock(job->mutex);
    job->hold();
    board_.open(job->index, block->id, targets_of(block));
    ++job->blocks_offered;
  }
  device_->look_at_board();
  submit_look(job, block->id);
}

JobPtr PairDispatcher::find(ModelId model) const {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(model);
  return found == jobs_.end() ? nullptr : found->second;
}

void PairDispatcher::submit_look(const JobPtr& job, BlockId block) {
  search_.tasks.submit(TaskClass::kFilter, static_cast<double>(job->index), [this, job, block] {
    if (!search_.tasks.stopped()) look(job, block);
  });
}

void PairDispatcher::look(const JobPtr& job, BlockId block) {
  const bool open = board_.is_open(job->index, block);
  if (open && device_->serves(job->index, block)) return;
  const TargetsPtr targets = board_.take_for_host(job->index, block);
  if (targets == nullptr) return;
  if (open) {
    // A device may still claim other pairs, so this one is done at once and whole.
    filters_.filter_now(job, targets);
  } else {
    filters_.submit(job, targets);
  }
  filters_.end_filter(job);
}

void PairDispatcher::left_to_host(ModelId model, BlockId block) noexcept {
  search_.tasks.guarded([&] {
    if (const JobPtr job = find(model)) submit_look(job, block);
  });
}

}  // namespace hmmjit::search_run
