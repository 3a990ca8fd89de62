#include "search/search_run.hpp"

namespace hmmjit::search_run {

void Run::resume_reading() {
  {
    const std::lock_guard lock(mutex_);
    if (reading_ || input_ended_ || filling_ || stopped()) return;
    if (streaming_ && in_flight_bytes_ >= target_budget_) return;
    if (models_ended_ && again_.empty() && active_ == 0 && preparing_ == 0) return;
    reading_ = true;
  }
  submit_task(TaskClass::kControl, 1, [this] { read_targets(); });
}

void Run::decode_ahead() {
  if (!input_->compressed() || pool_.threads() == 1 || decoding_ahead_.exchange(true)) return;
  submit_task(TaskClass::kControl, 0, [this, input = input_] {
    const double begun = now_seconds(), used = thread_seconds();
    while (!stopped() && input->decode_ahead()) {
    }
    locals_.local().decode_seconds += thread_seconds() - used;
    trace("decompress", begun);
    decoding_ahead_ = false;
  });
}

void Run::read_targets() {
  for (;;) {
    if (stopped()) return;
    decode_ahead();
    TargetBlock targets;
    const double begun = now_seconds(), used = thread_seconds();
    auto more = input_->next(targets, block_residues_);
    if (more && *more) targets.shrink_to_fit();
    statistics_.read_seconds += thread_seconds() - used;
    trace("read", begun);
    progress_.target_bytes_read = input_->bytes_read();
    progress_.target_bytes_total = input_->bytes_total();
    if (!more) return abort_run(more.error());
    if (!*more) return end_of_targets();
    if (!add_block(std::make_shared<Block>(*this, std::move(targets)))) return;
  }
}

bool Run::add_block(BlockPtr block) {
  std::vector<JobPtr> jobs;
  bool pause = false, fill = false;
  in_flight_bytes_ += block->bytes;
  if (statistics_.passes == 1) {
    ++statistics_.blocks;
    statistics_.targets += block->targets.size();
    statistics_.residues += block->targets.residue_count();
    progress_.targets = statistics_.targets;
    progress_.residues = statistics_.residues;
    if (spool_) {
      if (auto status = spool_->append(block->targets); !status) {
        abort_run(status.error());
        return false;
      }
    }
  }
  {
    const std::lock_guard lock(mutex_);
    jobs = open_jobs_;
    // Once reading may go on elsewhere, the input may end before this block is submitted.
    for (const JobPtr& job : jobs) hold_job(*job);
    if (!streaming_) {
      blocks_.push_back(block);
      if (in_flight_bytes_ > target_budget_) {
        // The targets do not fit: complete a batch of models, then let blocks go.
        statistics_.streamed = streaming_ = filling_ = fill = pause = true;
      }
    } else {
      pause = in_flight_bytes_ >= target_budget_;
    }
    if (pause) reading_ = false;
  }
  if (device_ != nullptr) board_.add_block(block->id);
  for (const JobPtr& job : jobs) submit_filters(job, block);
  if (device_ != nullptr) {
    device_->add_block({block->id, targets_of(block)});
    // A device must not wait for more while reading waits for it.
    if (pause) device_->end_blocks();
  }
  for (const JobPtr& job : jobs) end_filter(job);
  block.reset();
  if (fill) after_model_change();
  if (pause && !fill) resume_reading();  // the block may have been finished meanwhile
  return !pause;
}

void Run::batch_is_filled() {
  // A second pass over a pipe needs a copy of what went by.
  if (statistics_.passes == 1 && !input_->rewindable() && !spool_ && more_models()) {
    auto spool = BlockSpool::create();
    if (!spool) return abort_run(spool.error());
    for (const BlockPtr& block : blocks_) {
      if (auto status = (*spool)->append(block->targets); !status) return abort_run(status.error());
    }
    spool_ = *std::move(spool);
    statistics_.spooled = true;
  }
  std::vector<BlockPtr> released;
  std::vector<JobPtr> jobs;
  releasing_blocks_ = true;
  {
    const std::lock_guard lock(mutex_);
    released.swap(blocks_);
    jobs = open_jobs_;
  }
  if (device_ != nullptr) {
    device_->set_streaming();
    device_->end_blocks();
  }
  released.clear();
  // Survivors that began to wait before hold blocks as well.
  for (const JobPtr& job : jobs) submit_waiting(job);
  resume_reading();
}

void Run::end_of_targets() {
  std::vector<JobPtr> jobs;
  {
    const std::lock_guard lock(mutex_);
    input_ended_ = true;
    reading_ = false;
    jobs.swap(open_jobs_);
  }
  if (statistics_.passes == 1) statistics_.bytes_read = input_->bytes_read();
  progress_.targets_complete = true;
  if (device_ != nullptr) device_->end_blocks();
  for (const JobPtr& job : jobs) end_filter(job);
  next_pass();
}

void Run::next_pass() {
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = !again_.empty();
    if (!streaming_ || !input_ended_ || active_ > 0 || preparing_ > 0 ||
        (models_ended_ && !again) || reading_ || stopped())
      return;
    reading_ = true;  // keeps others out of here
  }
  if (!again && !more_models()) {
    {
      const std::lock_guard lock(mutex_);
      models_ended_ = true;
    }
    return after_model_change();
  }
  if (spool_) input_ = spool_.get();
  if (auto status = input_->rewind(); !status) return abort_run(status.error());
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.passes;
    input_ended_ = false;
    filling_ = true;
    reading_ = false;
  }
  after_model_change();
}

}  // namespace hmmjit::search_run
