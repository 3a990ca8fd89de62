#include "search/model_input.hpp"

#include <utility>

#include "build/calibration.hpp"

namespace hmmjit::search_run {

Result<std::optional<Query>> ModelInput::next(std::size_t& index) {
  const MutexLock lock(mutex_);
  index = next_index_;
  Read& read = peek();
  if (!read || !*read) return read;
  ++next_index_;
  Read model = std::move(read);
  read_.reset();
  return model;
}

bool ModelInput::has_more() {
  const MutexLock lock(mutex_);
  const Read& read = peek();
  return !read || *read;
}

ModelInput::Read& ModelInput::peek() {
  if (read_ && *read_ && !**read_ && reopened_.exchange(false)) read_.reset();
  if (!read_) read_ = source_();
  return *read_;
}

Result<JobPtr> set_up(Query query, std::size_t index, const SearchOptions& options, double begun) {
  if (query.prepared == nullptr) {
    HMMJIT_TRY(build::calibrate_if_needed(query.hmm, options.calibration));
    query.prepared = std::make_shared<PreparedModel>(begin_search_model(std::move(query.hmm)));
  }
  auto job = std::make_shared<ModelJob>();
  job->index = index;
  job->begun = begun;
  job->prepared = std::move(query.prepared);
  job->name = job->hmm().name;
  HMMJIT_ASSIGN(job->thresholds, thresholds_for(options.thresholds, job->hmm(), query.cutoff));
  job->sequence = std::move(query.sequence);
  job->nodes = static_cast<std::uint64_t>(job->hmm().M);
  job->filters.emplace(*job->prepared, options.filters);
  job->bytes = job->prepared->bytes();
  return job;
}

}  // namespace hmmjit::search_run
