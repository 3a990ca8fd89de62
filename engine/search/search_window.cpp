#include "search/search_window.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {

namespace {

// Limits of a search with a device: models set up at a time, models in flight, and their bytes.
constexpr std::size_t kSettingUpBesideDevice = 4, kActiveBesideDevice = 1024;
constexpr std::uint64_t kModelBytesBesideDevice = std::uint64_t{64} << 20;

}  // namespace

bool ModelsInFlight::may_start(const SearchDemand& demand, Batch batch) const {
  if (demand.stopped || !more()) return false;
  const std::uint64_t most_active = most_models(limits_.threads);
  // Models wait for the end of the targets, which may arrive slowly, so the bound holds from the
  // first model on. Models that are being set up have no size yet.
  const std::size_t expected = active_bytes_ + model_estimate_ * (preparing_ + 1);
  if (any() && expected > limits_.model_bytes) return false;
  if (batch != Batch::kNone) return batch == Batch::kFilling && preparing_ < most_active;
  // A model counts as work before it is set up, so that one call does not start them all.
  if (demand.results_full) return false;
  const std::size_t in_flight = preparing_ + active_;
  if (!limits_.device)
    return in_flight < most_active &&
           demand.waiting_filters + preparing_ < low_water(limits_.threads);
  // A device finishes a model long before its last domain is scored, and needs many models to stay
  // busy. Models are parsed one at a time anyway.
  return preparing_ < kSettingUpBesideDevice &&
         (in_flight < most_active ||
          (in_flight < kActiveBesideDevice &&
           active_bytes_ + preparing_ * model_estimate_ <
               std::min<std::uint64_t>(limits_.model_bytes, kModelBytesBesideDevice)));
}

std::size_t ModelsInFlight::start(const SearchDemand& demand, Batch batch) {
  const std::size_t before = preparing_;
  while (may_start(demand, batch)) ++preparing_;
  return preparing_ - before;
}

void ModelsInFlight::end_input(bool setting_up) {
  models_ended_ = true;
  if (setting_up) --preparing_;
}

void ModelsInFlight::add(std::size_t bytes) {
  --preparing_;
  ++active_;
  active_bytes_ += bytes;
  model_estimate_ = std::max(model_estimate_, bytes);
}

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
