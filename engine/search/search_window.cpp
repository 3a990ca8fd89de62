#include "search/search_window.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hmmjit::search_run {
namespace {

// Models beside a device: set up at a time, in flight at most, and their bytes.
constexpr std::size_t kSettingUpBesideDevice = 4, kActiveBesideDevice = 1024;
constexpr std::uint64_t kModelBytesBesideDevice = std::uint64_t{64} << 20;

}  // namespace

bool SearchWindow::may_start_model(const Demand& demand) const {
  if (demand.stopped || (models_ended_ && again_.empty())) return false;
  const std::uint64_t most_active = most_models(limits_.threads);
  // Models wait for the end of the targets, which may be slow to come: the bound holds from the
  // first model on. What is being set up has no size yet.
  const std::size_t expected =
      active_bytes_ + demand.delivered_bytes + model_estimate_ * (preparing_ + 1);
  if (active_ + preparing_ > 0 && expected > limits_.model_bytes) return false;
  if (streaming_) return filling_ && preparing_ < most_active;
  // Results of later models wait for such a one.
  if (!again_.empty()) return true;
  // A model counts as work before it is set up, so that one call does not start them all.
  if (demand.results_full) return false;
  const std::size_t in_flight = preparing_ + active_;
  if (!limits_.device)
    return in_flight < most_active &&
           demand.waiting_filters + preparing_ < low_water(limits_.threads);
  // A device ends its part of a model long before the last domain is scored, and many models at a
  // time keep it busy. Models are parsed one at a time anyway.
  return preparing_ < kSettingUpBesideDevice &&
         (in_flight < most_active ||
          (in_flight < kActiveBesideDevice &&
           active_bytes_ + preparing_ * model_estimate_ <
               std::min<std::uint64_t>(limits_.model_bytes, kModelBytesBesideDevice)));
}

SearchWindow::Start SearchWindow::start_models(const Demand& demand) {
  Start out;
  const MutexLock lock(mutex_);
  while (may_start_model(demand)) {
    ++preparing_;
    if (again_.empty()) {
      ++out.next;
      continue;
    }
    out.again.push_back(std::move(again_.front()));
    again_.pop_front();
  }
  return out;
}

void SearchWindow::end_models(bool setting_up) {
  const MutexLock lock(mutex_);
  models_ended_ = true;
  if (setting_up) --preparing_;
}

SearchWindow::Joined SearchWindow::add_model(const JobPtr& job) {
  const MutexLock lock(mutex_);
  --preparing_;
  ++active_;
  active_bytes_ += job->bytes;
  model_estimate_ = std::max(model_estimate_, job->bytes);
  if (!input_ended_) {
    open_jobs_.push_back(job);
    job->hold();  // the reading task may end the input before the blocks are submitted
  }
  return {blocks_, input_ended_};
}

void SearchWindow::release_model_bytes(std::size_t bytes) {
  const MutexLock lock(mutex_);
  active_bytes_ -= bytes;
}

void SearchWindow::end_model(std::optional<Again> again) {
  const MutexLock lock(mutex_);
  --active_;
  if (again) again_.push_back(*std::move(again));
}

void SearchWindow::search_again(std::vector<Again> models) {
  const MutexLock lock(mutex_);
  std::ranges::move(models, std::back_inserter(again_));
}

bool SearchWindow::complete() const {
  const MutexLock lock(mutex_);
  return nothing_left();
}

bool SearchWindow::resume_reading() {
  const MutexLock lock(mutex_);
  if (reading_ || input_ended_ || filling_ || nothing_left()) return false;
  if (streaming_ && block_bytes_ >= limits_.target_bytes) return false;
  return reading_ = true;
}

SearchWindow::Added SearchWindow::add_block(const BlockPtr& block) {
  Added out;
  block_bytes_ += block->bytes;
  const MutexLock lock(mutex_);
  out.jobs = open_jobs_;
  // Once reading may go on elsewhere, the input may end before this block is submitted.
  for (const JobPtr& job : out.jobs) job->hold();
  if (!streaming_) {
    blocks_.push_back(block);
    if (block_bytes_ > limits_.target_bytes) streaming_ = filling_ = out.fill = out.pause = true;
  } else {
    out.pause = block_bytes_ >= limits_.target_bytes;
  }
  if (out.pause) reading_ = false;
  return out;
}

bool SearchWindow::batch_filled(const Demand& demand) {
  const MutexLock lock(mutex_);
  if (!filling_ || preparing_ > 0 || may_start_model(demand)) return false;
  filling_ = false;
  return true;
}

SearchWindow::Batch SearchWindow::release_blocks() {
  Batch out;
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

SearchWindow::NextPass SearchWindow::next_pass(bool stopped) {
  const MutexLock lock(mutex_);
  const bool again = !again_.empty();
  if (!streaming_ || !input_ended_ || active_ > 0 || preparing_ > 0 || (models_ended_ && !again) ||
      reading_ || stopped)
    return NextPass::kNo;
  reading_ = true;  // keeps other threads out of here
  return again ? NextPass::kYes : NextPass::kIfMoreModels;
}

void SearchWindow::begin_pass() {
  const MutexLock lock(mutex_);
  input_ended_ = false;
  filling_ = true;
  reading_ = false;
}

}  // namespace hmmjit::search_run
