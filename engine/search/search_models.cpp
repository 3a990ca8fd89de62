#include "build/calibration.hpp"
#include "search/search_run.hpp"

namespace hmmjit::search_run {
namespace {

// Models beside a device: set up at a time, in flight at most, and their bytes.
constexpr std::size_t kSettingUpBesideDevice = 4, kActiveBesideDevice = 1024;
constexpr std::uint64_t kModelBytesBesideDevice = std::uint64_t{64} << 20;

}  // namespace

bool Run::may_start_model() const {
  if (stopped() || (models_ended_ && again_.empty())) return false;
  // Models wait for the end of the targets, which may be slow to come: the bound holds from the
  // first model on. What is being set up has no size yet.
  const std::size_t expected =
      active_bytes_ + delivered_model_bytes_ + model_estimate_ * (preparing_ + 1);
  if (active_ + preparing_ > 0 && expected > model_budget_) return false;
  if (streaming_) return filling_ && preparing_ < max_active_;
  // Results behind such a model wait for it.
  if (!again_.empty()) return true;
  // A model counts as work before it is set up, so that one call does not start them all.
  if (undelivered_bytes_ >= result_budget_) return false;
  const std::size_t in_flight = preparing_ + active_;
  if (device_ == nullptr)
    return in_flight < max_active_ && queued_filters_ + preparing_ < low_water_;
  // A device is through with a model long before its last domain is scored, and many at a time
  // keep it busy. Models are parsed one at a time anyway.
  return preparing_ < kSettingUpBesideDevice &&
         (in_flight < max_active_ ||
          (in_flight < kActiveBesideDevice &&
           active_bytes_ + preparing_ * model_estimate_ <
               std::min<std::uint64_t>(model_budget_, kModelBytesBesideDevice)));
}

void Run::start_models() {
  std::vector<Again> again;
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    while (may_start_model()) {
      ++preparing_;
      if (again_.empty()) {
        ++count;
        continue;
      }
      again.push_back(std::move(again_.front()));
      again_.pop_front();
    }
  }
  for (Again& model : again) {
    submit_task(TaskClass::kControl, 0, [this, model = std::move(model)] { set_up_again(model); });
  }
  for (std::size_t i = 0; i < count; ++i)
    submit_task(TaskClass::kControl, 0, [this] { set_up_model(); });
}

Result<std::optional<Query>> Run::next_model(std::size_t& index) {
  const std::lock_guard lock(models_mutex_);
  index = next_index_;
  if (peeked_) {
    std::optional<Query> query = std::exchange(peeked_, std::nullopt);
    ++next_index_;
    return query;
  }
  if (models_at_end_) return std::nullopt;
  auto hmm = models_();
  if (!hmm || !*hmm) models_at_end_ = true;
  if (!hmm || *hmm) ++next_index_;
  return hmm;
}

bool Run::more_models() {
  const std::lock_guard lock(models_mutex_);
  if (peeked_) return true;
  if (models_at_end_) return false;
  auto hmm = models_();
  if (!hmm) {
    peek_error_ = hmm.error();
    return true;
  }
  if (!*hmm) {
    models_at_end_ = true;
    return false;
  }
  peeked_ = std::move(*hmm);
  return true;
}

void Run::set_up_model() {
  if (stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  std::size_t index = 0;
  if (peek_error_) return fail_model(next_index_, *peek_error_);
  auto query = next_model(index);
  if (!query) return fail_model(index, query.error());
  if (!*query) {
    {
      const std::lock_guard lock(mutex_);
      models_ended_ = true;
      --preparing_;
    }
    return after_model_change();
  }
  Hmm& hmm = (*query)->hmm;
  // Imported models and those just built have no score statistics; a simulation gives HMMER's.
  if (hmm.needs_calibration) {
    auto calibration = build::calibrate(hmm, options_.calibration);
    if (!calibration) return fail_model(index, calibration.error());
    hmm.calibration = *calibration;
    hmm.needs_calibration = false;
  }
  auto job = make_job(index, *std::move(*query), begun);
  if (!job) return fail_model(index, job.error());
  (*job)->cpu_seconds = thread_seconds() - used;
  ++progress_.models_started;
  locals_.local().setup_seconds += (*job)->cpu_seconds;
  trace("set-up", begun);
  activate(*job);
}

Result<JobPtr> Run::make_job(std::size_t index, Query query, double begun) {
  auto job = std::make_shared<ModelJob>();
  job->index = index;
  job->begun = begun;
  HMMJIT_ASSIGN(job->thresholds, thresholds_for(options_.thresholds, query.hmm));
  job->sequence = std::move(query.sequence);
  job->model = make_search_model(std::move(query.hmm));
  HMMJIT_ASSIGN(job->filters, backend_.prepare(*job->model, options_.filters));
  job->bytes = model_bytes(*job);
  return job;
}

void Run::set_up_again(const Again& again) {
  if (stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  auto job = make_job(again.index, *again.query, begun);
  if (!job) return abort_run(job.error());
  (*job)->again = true;
  (*job)->expected = again.expected;
  (*job)->cpu_seconds = thread_seconds() - used;
  locals_.local().setup_seconds += (*job)->cpu_seconds;
  ++searched_again_;
  activate(*job);
}

std::size_t Run::model_bytes(const ModelJob& job) {
  // Profile and odds, twice (natural and striped), bytes, words and the core model.
  const auto nodes = static_cast<std::size_t>(job.model->hmm.M) + 16;
  return nodes * (3 * kMaxCodes * sizeof(float) + kMaxCodes * 3 + 60 * sizeof(float)) +
         job.filters->bytes() + 4096;
}

void Run::activate(const JobPtr& job) {
  std::vector<BlockPtr> blocks;
  bool complete = false;
  // First of all: the reading task may offer blocks of a job as soon as it can see it.
  const bool device = device_ != nullptr && !job->again;
  if (device) device_->add_model(job->index, job->model);
  {
    const std::lock_guard lock(mutex_);
    --preparing_;
    ++active_;
    active_bytes_ += job->bytes;
    model_estimate_ = std::max(model_estimate_, job->bytes);
    blocks = blocks_;
    complete = input_ended_;
    if (!complete) {
      open_jobs_.push_back(job);
      hold_job(*job);  // the reading task may end the input before the blocks are submitted
    }
    if (device) device_jobs_.emplace(job->index, job);
  }
  for (const BlockPtr& block : blocks) submit_filters(job, block);
  end_filter(job);  // or of the hold
  after_model_change();
}

void Run::after_model_change() {
  start_models();
  bool filled = false;
  {
    const std::lock_guard lock(mutex_);
    if (filling_ && preparing_ == 0 && !may_start_model()) {
      filling_ = false;
      filled = true;
    }
  }
  if (filled) submit_task(TaskClass::kControl, 0, [this] { batch_is_filled(); });
  deliver();
  resume_reading();
  release_pool_if_done();
}

}  // namespace hmmjit::search_run
