#include "search/model_input.hpp"

#include <utility>

#include "build/calibration.hpp"

namespace hmmjit::search_run {
namespace {

std::size_t model_bytes(const ModelJob& job) {
  // Profile and odds, twice (natural and striped), bytes, words and the core model.
  const auto nodes = static_cast<std::size_t>(job.nodes) + 16;
  return nodes * (3 * kMaxCodes * sizeof(float) + kMaxCodes * 3 + 60 * sizeof(float)) +
         job.filters->bytes() + 4096;
}

}  // namespace

Result<std::optional<Query>> ModelInput::next(std::size_t& index) {
  const MutexLock lock(mutex_);
  index = next_index_;
  if (peek_error_) return std::unexpected(*peek_error_);
  if (peeked_) {
    std::optional<Query> query = std::exchange(peeked_, std::nullopt);
    ++next_index_;
    return query;
  }
  if (ended_) return std::nullopt;
  auto query = source_();
  if (!query || !*query) ended_ = true;
  if (!query || *query) ++next_index_;
  return query;
}

bool ModelInput::has_more() {
  const MutexLock lock(mutex_);
  if (peeked_ || peek_error_) return true;
  if (ended_) return false;
  auto query = source_();
  if (!query) {
    peek_error_ = query.error();
    return true;
  }
  if (!*query) {
    ended_ = true;
    return false;
  }
  peeked_ = std::move(*query);
  return true;
}

Result<JobPtr> set_up(Query query, std::size_t index, const SearchOptions& options, double begun) {
  // Imported models and those just built have no score statistics; a simulation gives HMMER's.
  Hmm& hmm = query.hmm;
  if (hmm.needs_calibration) {
    HMMJIT_ASSIGN(hmm.calibration, build::calibrate(hmm, options.calibration));
    hmm.needs_calibration = false;
  }
  auto job = std::make_shared<ModelJob>();
  job->index = index;
  job->begun = begun;
  HMMJIT_ASSIGN(job->thresholds, thresholds_for(options.thresholds, hmm));
  job->sequence = std::move(query.sequence);
  job->model = make_search_model(std::move(hmm));
  job->nodes = static_cast<std::uint64_t>(job->model->hmm.M);
  job->filters.emplace(*job->model, options.filters);
  job->bytes = model_bytes(*job);
  return job;
}

}  // namespace hmmjit::search_run
