#include "search/shared_run.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "core/threads.hpp"
#include "search/results.hpp"

namespace hmmjit::search_run {
namespace {

// A run keeps a record of every search that took part.
constexpr std::size_t kMostSearches = 1000;

using P = SearchProgress;
using Counter = std::atomic<std::uint64_t> P::*;
// The targets are those of the run; work is the sum over its searches.
constexpr Counter kTargetCounters[] = {&P::target_bytes_read, &P::target_bytes_total, &P::targets,
                                       &P::residues};
constexpr Counter kWorkCounters[] = {
    &P::cells,         &P::cells_queued,        &P::scoring_cells_found,
    &P::scoring_cells, &P::filter_microseconds, &P::scoring_microseconds};

}  // namespace

// ---- SharedSearch ------------------------------------------------------------------------------

SharedSearch::SharedSearch(const SearchOptions& options, const ModelSource& models,
                           ResultSink& sink, SearchProgress& progress)
    : options_(options),
      models_(models),
      sink_(sink),
      progress_(progress),
      takes_stored_hits_(sink.takes_stored_hits()),
      created_(Trace::now()),
      end_(options.cancellation != nullptr ? std::optional<Event>(std::in_place) : std::nullopt) {}

template <typename Use>
void SharedSearch::with(Use&& use) const {
  const std::shared_lock using_it(uses_);
  if (ended_) return;
  try {
    use();
  } catch (const std::bad_alloc&) {
    end(fail(ErrorCode::kResources, "out of memory"));
  } catch (...) {
    end(std::current_exception());
  }
}

Result<SearchStatistics> SharedSearch::wait() {
  std::future<Result<SearchStatistics>> outcome = outcome_.get_future();
  if (end_ && !Cancellation::wait(*end_, options_.cancellation))
    end(fail(ErrorCode::kInterrupted, "the search was cancelled"));
  outcome.wait();
  const std::unique_lock no_longer_used(uses_);
  return outcome.get();
}

void SharedSearch::share() {
  {
    const MutexLock lock(mutex_);
    shares_ = true;
  }
  end_if_complete();
}

void SharedSearch::end(Result<SearchStatistics> outcome) const {
  if (ended_.exchange(true)) return;
  outcome_.set_value(std::move(outcome));
  if (end_) end_->happen();
}

void SharedSearch::end(std::exception_ptr thrown) const {
  if (ended_.exchange(true)) return;
  outcome_.set_exception(std::move(thrown));
  if (end_) end_->happen();
}

bool SharedSearch::has_models() const {
  const MutexLock lock(mutex_);
  return !last_model_read_;
}

std::optional<Query> SharedSearch::next_model() {
  Result<std::optional<Query>> query = std::nullopt;
  with([&] {
    query = models_();
    progress_.models_started += query && *query;
  });
  {
    const MutexLock lock(mutex_);
    if (query && *query && !last_model_read_) {
      (*query)->recipient = {this, models_read_++};
      return *std::move(query);
    }
    last_model_read_ = true;
    if (!query && !model_error_) model_error_ = query.error();
  }
  end_if_complete();
  return std::nullopt;
}

void SharedSearch::show(const SearchProgress& run) {
  with([&] {
    for (const Counter counter : kTargetCounters) progress_.*counter = (run.*counter).load();
    // What the run did before does not count.
    const MutexLock lock(mutex_);
    const bool first = work_before_.empty();
    for (std::size_t i = 0; i < std::size(kWorkCounters); ++i) {
      const std::uint64_t work = run.*kWorkCounters[i];
      if (first) work_before_.push_back(work);
      progress_.*kWorkCounters[i] = work - std::min(work, work_before_[i]);
    }
    progress_.targets_complete = run.targets_complete.load();
    progress_.wrong_kernel = run.wrong_kernel.load();
  });
}

void SharedSearch::warn(const Error& warning) const {
  with([&] {
    if (options_.on_warning) options_.on_warning(warning);
  });
}

std::shared_ptr<PreparedResult> SharedSearch::prepare(const ModelResult& result) const {
  std::shared_ptr<PreparedResult> prepared;
  with([&] { prepared = sink_.prepare(result); });
  return prepared;
}

void SharedSearch::make(PreparedResult& prepared, std::size_t part) const {
  with([&] { prepared.make(part); });
}

Status SharedSearch::receive(const ModelResult& result) {
  with([&] {
    if (const Status status = deliver_result(result, sink_, progress_, sums_); !status)
      end(std::unexpected(status.error()));
    ++progress_.models_done;
  });
  ++delivered_;
  end_if_complete();
  return {};
}

bool SharedSearch::take_error(std::size_t index, const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (index < models_read_) {
      last_model_read_ = true;
      models_read_ = index;
      model_error_ = error;
    }
  }
  end_if_complete();
  return true;
}

void SharedSearch::end_if_complete() {
  with([&] {
    const MutexLock lock(mutex_);
    if (!last_model_read_ || delivered_ < models_read_) return;
    if (model_error_) return end(std::unexpected(*model_error_));
    if (!shares_) return;  // the run ends it, with statistics
    SearchStatistics out = sums_;
    out.backend = host_filters_name();
    out.models = models_read_;
    out.threads = options_.threads;
    out.shared = true;
    out.targets = progress_.targets;
    out.residues = progress_.residues;
    out.wall_seconds = Trace::now() - created_;
    end(std::move(out));
  });
}

// ---- SharedRun ---------------------------------------------------------------------------------

std::shared_ptr<const ResidentTargets> shared_targets(const SearchOptions& options,
                                                      const TargetSource& targets) {
  const bool alone = options.own_run || options.trace != nullptr || options.by_target ||
                     options.filters.per_target != nullptr;
  return alone ? nullptr : targets.resident();
}

SharedRun::SharedRun(std::shared_ptr<const ResidentTargets> targets, const SearchOptions& options,
                     bool takes_stored_hits)
    : targets_(std::move(targets)), takes_stored_hits_(takes_stored_hits), options_(options) {
  options_.cancellation = &all_have_ended_;
  options_.on_progress = [this] {
    for (const auto& search : searches()) search->show(*progress_);
  };
  options_.on_warning = [this](const Error& warning) {
    for (const auto& search : searches()) search->warn(warning);
  };
}

bool SharedRun::serves(const ResidentTargets& targets, const SearchOptions& options,
                       bool takes_stored_hits) const {
  const SearchSettings& mine = options_;
  return targets_.get() == &targets && takes_stored_hits_ == takes_stored_hits && mine == options;
}

bool SharedRun::join(const std::shared_ptr<SharedSearch>& search) {
  const MutexLock lock(mutex_);
  if (closed_ || searches_.size() + ended_.size() == kMostSearches) return false;
  const auto ended =
      std::ranges::partition(searches_, [](const auto& each) { return !each->ended(); });
  std::ranges::move(ended, std::back_inserter(ended_));
  searches_.erase(ended.begin(), ended.end());
  searches_.push_back(search);
  if (searches_.size() + ended_.size() > 1) {
    for (const auto& each : searches_) each->share();
  }
  return true;
}

bool SharedRun::close_if_done() {
  const MutexLock lock(mutex_);
  closed_ = std::ranges::none_of(
      searches_, [](const auto& search) { return !search->ended() && search->has_models(); });
  return closed_;
}

SharedRun::Searches SharedRun::searches() const {
  const MutexLock lock(mutex_);
  return searches_;
}

std::optional<Query> SharedRun::next_model() {
  for (;;) {
    std::shared_ptr<SharedSearch> search;
    {
      const MutexLock lock(mutex_);
      for (std::size_t i = 0; i < searches_.size() && search == nullptr; ++i) {
        const auto& next = searches_[turn_++ % searches_.size()];
        if (next->has_models()) search = next;
      }
      if (search == nullptr) return std::nullopt;
    }
    if (auto query = search->next_model()) return query;
  }
}

void SharedRun::leave() {
  const MutexLock lock(mutex_);
  if (!std::ranges::all_of(searches_, [](const auto& search) { return search->ended(); })) return;
  closed_ = true;
  all_have_ended_.cancel();
}

template <typename Outcome>
void SharedRun::end_all(const Outcome& outcome) {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  for (const auto& search : searches()) {
    if (progress_) search->show(*progress_);
    search->end(outcome);
  }
}

void SharedRun::run(gpu::GpuFilters* device) {
  const auto models = [this]() -> Result<std::optional<Query>> { return next_model(); };
  // Every model has a recipient: the sink shows only which results are accepted.
  const std::shared_ptr<SharedSearch> sink = searches().front();
  for (;;) {
    const std::unique_ptr<TargetSource> targets = targets_->open();
    progress_.emplace();
    const auto outcome =
        search(options_, models, *targets, device, *sink, &*progress_, &late_models_);
    // A search that joined after the last result has models.
    if (!outcome || close_if_done()) return end_all(outcome);
  }
}

void SharedRun::end(const std::exception_ptr& thrown) { end_all(thrown); }

}  // namespace hmmjit::search_run
