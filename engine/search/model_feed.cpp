#include "search/model_feed.hpp"

#include <utility>

#include "build/calibration.hpp"

namespace hmmjit::search_run {
namespace {

std::size_t model_bytes(const ModelJob& job) {
  // Profile and odds, twice (natural and striped), bytes, words and the core model.
  const auto nodes = static_cast<std::size_t>(job.model->hmm.M) + 16;
  return nodes * (3 * kMaxCodes * sizeof(float) + kMaxCodes * 3 + 60 * sizeof(float)) +
         job.filters->bytes() + 4096;
}

}  // namespace

SearchWindow::Demand ModelFeed::demand() const {
  return {.stopped = search_.tasks.stopped(),
          .results_full = queue_.full(),
          .waiting_filters = filters_.waiting()};
}

void ModelFeed::start() {
  for (std::size_t count = window_.start_models(demand()); count > 0; --count)
    search_.tasks.submit(TaskClass::kControl, 0, [this] { set_up(); });
}

void ModelFeed::fail(std::size_t index, Error error) {
  queue_.fail(index, std::move(error));
  window_.end_models(true);
  control_.models_changed();
}

void ModelFeed::set_up() {
  if (search_.tasks.stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  std::size_t index = 0;
  auto query = input_.next(index);
  if (!query) return fail(index, query.error());
  if (!*query) {
    window_.end_models(true);
    return control_.models_changed();
  }
  Hmm& hmm = (*query)->hmm;
  // Imported models and those just built have no score statistics; a simulation gives HMMER's.
  if (hmm.needs_calibration) {
    auto calibration = build::calibrate(hmm, search_.options.calibration);
    if (!calibration) return fail(index, calibration.error());
    hmm.calibration = *calibration;
    hmm.needs_calibration = false;
  }
  auto job = make_job(index, *std::move(*query), begun);
  if (!job) return fail(index, job.error());
  ++search_.progress.models_started;
  search_.tasks.trace("set-up", begun);
  activate(*job, used);
}

Result<JobPtr> ModelFeed::make_job(std::size_t index, Query query, double begun) {
  auto job = std::make_shared<ModelJob>();
  job->index = index;
  job->begun = begun;
  HMMJIT_ASSIGN(job->thresholds, thresholds_for(search_.options.thresholds, query.hmm));
  job->sequence = std::move(query.sequence);
  job->model = make_search_model(std::move(query.hmm));
  job->filters.emplace(*job->model, search_.options.filters);
  job->bytes = model_bytes(*job);
  return job;
}

void ModelFeed::activate(const JobPtr& job, double used) {
  const double seconds = thread_seconds() - used;
  search_.threads.local().setup_seconds += seconds;
  {
    const MutexLock lock(job->mutex);
    job->cpu_seconds = seconds;
  }
  // Before add_model: the reading task may submit blocks of a job as soon as the window has it.
  pairs_.add_model(job);
  const SearchWindow::Joined joined = window_.add_model(job);
  for (const BlockPtr& block : joined.blocks) pairs_.submit(job, block);
  filters_.end_filter(job);
  control_.models_changed();
}

}  // namespace hmmjit::search_run
