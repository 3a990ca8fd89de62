#include "search/search_window.hpp"

#include <utility>

namespace hmmjit::search_run {

std::size_t SearchWindow::start_models(const Demand& demand) {
  const MutexLock lock(mutex_);
  return models_.start(demand, batch_);
}

void SearchWindow::end_models(bool setting_up) {
  const MutexLock lock(mutex_);
  models_.end_input(setting_up);
}

SearchWindow::Joined SearchWindow::add_model(const JobPtr& job) {
  const MutexLock lock(mutex_);
  models_.add(job->bytes);
  if (!input_ended_) {
    open_jobs_.push_back(job);
    job->hold();  // the reading task may end the input before the blocks are submitted
  }
  return {blocks_, input_ended_};
}

void SearchWindow::release_model_bytes(std::size_t bytes) {
  const MutexLock lock(mutex_);
  models_.release(bytes);
}

void SearchWindow::end_model() {
  const MutexLock lock(mutex_);
  models_.end();
}

bool SearchWindow::complete() const {
  const MutexLock lock(mutex_);
  return !models_.any() && !models_.more();
}

bool SearchWindow::resume_reading() {
  const MutexLock lock(mutex_);
  if (reading_ || input_ended_ || batch_ == Batch::kFilling) return false;
  if (!models_.any() && !models_.more()) return false;
  if (batch_ != Batch::kNone && block_bytes_ >= limits_.target_bytes) return false;
  return reading_ = true;
}

SearchWindow::Added SearchWindow::add_block(const BlockPtr& block) {
  Added out;
  block_bytes_ += block->bytes;
  const MutexLock lock(mutex_);
  out.jobs = open_jobs_;
  // Once reading may go on elsewhere, the input may end before this block is submitted.
  for (const JobPtr& job : out.jobs) job->hold();
  if (batch_ == Batch::kNone) {
    blocks_.push_back(block);
    if (block_bytes_ > limits_.target_bytes) {
      batch_ = Batch::kFilling;
      out.fill = out.pause = true;
    }
  } else {
    out.pause = block_bytes_ >= limits_.target_bytes;
  }
  if (out.pause) reading_ = false;
  return out;
}

bool SearchWindow::batch_filled(const Demand& demand) {
  const MutexLock lock(mutex_);
  if (batch_ != Batch::kFilling || models_.setting_up() || models_.may_start(demand, batch_))
    return false;
  batch_ = Batch::kFull;
  return true;
}

SearchWindow::Released SearchWindow::release_blocks() {
  Released out;
  const MutexLock lock(mutex_);
  out.blocks.swap(blocks_);
  out.jobs = open_jobs_;
  return out;
}

std::vector<JobPtr> SearchWindow::end_targets() {
  std::vector<JobPtr> out;
  const MutexLock lock(mutex_);
  input_ended_ = true;
  reading_ = false;
  out.swap(open_jobs_);
  return out;
}

bool SearchWindow::next_pass(bool stopped) {
  const MutexLock lock(mutex_);
  if (batch_ == Batch::kNone || !input_ended_ || models_.any() || !models_.more() || reading_ ||
      stopped)
    return false;
  return reading_ = true;  // keeps other threads out of here
}

void SearchWindow::begin_pass() {
  const MutexLock lock(mutex_);
  input_ended_ = false;
  batch_ = Batch::kFilling;
  reading_ = false;
}

}  // namespace hmmjit::search_run
