#include "search/target_feed.hpp"

#include <utility>

namespace hmmjit::search_run {

void TargetFeed::block_released(BlockId block, std::size_t bytes) noexcept {
  if (search_.tasks.stopped()) return;  // perhaps together with the board
  window_.release_block_bytes(bytes);
  pairs_.remove_block(block);
  search_.tasks.guarded([this] { resume(); });
}

void TargetFeed::resume() {
  if (search_.tasks.stopped() || !window_.resume_reading()) return;
  search_.tasks.submit(TaskClass::kControl, 1, [this] { read(); });
}

void TargetFeed::decode_ahead() {
  if (!input_->compressed() || search_.tasks.threads() == 1 || decoding_ahead_.exchange(true))
    return;
  search_.tasks.submit(TaskClass::kControl, 0, [this, input = input_] {
    const double begun = now_seconds(), used = thread_seconds();
    while (!search_.tasks.stopped() && input->decode_ahead()) {
    }
    search_.threads.local().decode_seconds += thread_seconds() - used;
    search_.tasks.trace("decompress", begun);
    decoding_ahead_ = false;
  });
}

void TargetFeed::read() {
  for (;;) {
    if (search_.tasks.stopped()) return;
    decode_ahead();
    TargetBlock targets;
    const double begun = now_seconds(), used = thread_seconds();
    auto more = input_->next(targets, block_residues_);
    if (more && *more) targets.shrink_to_fit();
    read_seconds_ += thread_seconds() - used;
    search_.tasks.trace("read", begun);
    search_.progress.target_bytes_read = input_->bytes_read();
    search_.progress.target_bytes_total = input_->bytes_total();
    if (!more) return search_.tasks.abort(more.error());
    if (!*more) return end_of_targets();
    if (!add_block(std::make_shared<Block>(*this, std::move(targets)))) return;
  }
}

Status TargetFeed::count(const TargetBlock& targets) {
  if (passes_ > 1) return {};
  ++blocks_;
  targets_ += targets.size();
  residues_ += targets.residue_count();
  search_.progress.targets = targets_;
  search_.progress.residues = residues_;
  return spool_ ? spool_->append(targets) : Status{};
}

bool TargetFeed::add_block(BlockPtr block) {
  if (auto status = count(block->targets); !status) {
    search_.tasks.abort(status.error());
    return false;
  }
  const SearchWindow::Added added = window_.add_block(block);
  if (added.fill) streamed_ = true;
  pairs_.add_block(block->id);
  for (const JobPtr& job : added.jobs) pairs_.submit(job, block);
  if (device_ != nullptr) {
    device_->add_block({block->id, targets_of(block)});
    // A device must not wait for further blocks while reading waits for the device.
    if (added.pause) device_->end_blocks();
  }
  for (const JobPtr& job : added.jobs) filters_.end_filter(job);
  block.reset();
  if (added.fill) control_.models_changed();
  if (added.pause && !added.fill) resume();  // the block may have been finished meanwhile
  return !added.pause;
}

void TargetFeed::begin_batch() {
  SearchWindow::Released batch = window_.release_blocks();
  // A second pass over a pipe needs a copy of the targets.
  if (passes_ == 1 && !input_->rewindable() && !spool_ && models_.has_more()) {
    auto spool = BlockSpool::create();
    if (!spool) return search_.tasks.abort(spool.error());
    for (const BlockPtr& block : batch.blocks) {
      if (auto status = (*spool)->append(block->targets); !status)
        return search_.tasks.abort(status.error());
    }
    spool_ = *std::move(spool);
    spooled_ = true;
  }
  scorer_.stop_collecting();
  if (device_ != nullptr) {
    device_->set_streaming();
    device_->end_blocks();
  }
  batch.blocks.clear();
  // Survivors that are waiting already hold blocks as well.
  for (const JobPtr& job : batch.jobs) scorer_.submit_waiting(job);
  resume();
}

void TargetFeed::end_of_targets() {
  const std::vector<JobPtr> jobs = window_.end_targets();
  if (passes_ == 1) bytes_read_ = input_->bytes_read();
  search_.progress.targets_complete = true;
  if (device_ != nullptr) device_->end_blocks();
  for (const JobPtr& job : jobs) filters_.end_filter(job);
  next_pass();
}

void TargetFeed::next_pass() {
  if (!window_.next_pass(search_.tasks.stopped())) return;
  if (!models_.has_more()) {
    window_.end_models(false);
    return control_.models_changed();
  }
  if (spool_) input_ = spool_.get();
  if (auto status = input_->rewind(); !status) return search_.tasks.abort(status.error());
  ++passes_;
  window_.begin_pass();
  control_.models_changed();
}

void TargetFeed::add_to(SearchStatistics& statistics) const {
  statistics.passes = passes_;
  statistics.blocks = blocks_;
  statistics.targets = targets_;
  statistics.residues = residues_;
  statistics.bytes_read = bytes_read_;
  statistics.streamed = streamed_;
  statistics.spooled = spooled_;
  statistics.read_seconds += read_seconds_;
}

}  // namespace hmmjit::search_run
