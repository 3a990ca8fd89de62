// One search while it runs: workers that ask the agenda for work and do it with these steps.
//   model_input    reads models and sets them up
//   target_input   reads targets in blocks, once or for each batch of models
//   filtering      filters a part of a block
//   scorer         scores a batch of survivors: Forward and domains
//   results        hits to results, their text, and the sink
//   verifier       checks of what a device computed
// A step takes one piece of work and the state of its thread, and knows no other step.
#include "search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "core/at_end.hpp"
#include "core/random_seed.hpp"
#include "core/threads.hpp"
#include "core/workers.hpp"
#include "search/agenda.hpp"
#include "search/filtering.hpp"
#include "search/kept_hits.hpp"
#include "search/memory_shares.hpp"
#include "search/model_input.hpp"
#include "search/results.hpp"
#include "search/scorer.hpp"
#include "search/target_input.hpp"
#include "search/verifier.hpp"

namespace hmmjit {
namespace search_run {
namespace {

// As in the timeline: what is done, for which model.
std::string name_of(const Work& work) {
  return std::visit(
      [](const auto& w) -> std::string {
        if constexpr (requires { w.job; }) return fmt::format("{} {}", w.kName, w.job->name);
        return w.kName;
      },
      work);
}

// What a search may use: derived from its options and the machine before it begins.
struct RunLimits {
  RunLimits(const SearchOptions& options, std::uint64_t available, std::uint64_t target_bytes,
            gpu::GpuFilters* given_device)
      : threads(std::max(1, options.threads)),
        // With F1 at 1 (--max) the first kernels turn nothing away, so that a device saves nothing.
        device(options.filters.F1 < 1.0 ? given_device : nullptr),
        memory(divide_memory(options, threads, device != nullptr, available)),
        block_residues(std::min(memory.block, options.block_residues > 0
                                                  ? options.block_residues
                                                  : block_residues_of(target_bytes))),
        shared(options.domain),
        alone(options.domain) {
    shared.max_matrix_bytes = memory.matrix_shared;
    alone.max_matrix_bytes = memory.matrix_alone;
  }

  int threads;
  gpu::GpuFilters* device;  // null: none
  MemoryShares memory;
  std::size_t block_residues;
  domain::DomainOptions shared, alone;  // a thread's share; one thread alone
};

class Run final : private gpu::Client {
 public:
  Run(const SearchOptions& options, std::uint64_t available, const ModelSource& models,
      TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink, SearchProgress& progress);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  Result<SearchStatistics> run(LateModels* late);

 private:
  void attach_device();
  void work();
  // Running out of memory ends the search; any other exception leaves it.
  void guarded(const std::function<void()>& body);
  // Each does a piece of work and reports the outcome. They fail with errors that end the
  // search.
  Status perform(const End&) { return {}; }
  Status perform(const SetUpModel& work);
  Status perform(const ReadBlock& work);
  Status perform(const ReadAhead& work);
  Status perform(const BeginBatch& work);
  Status perform(const NextPass& work);
  Status perform(const Backfill& work);
  Status perform(const FilterRange& work);
  Status perform(const FilterPair& work);
  Status perform(const FilterRest& work);
  Status perform(const ScoreBatch& work);
  Status perform(const FinishModel& work);
  Status perform(const FormatPart& work);
  Status perform(const DeliverResult& work);
  // gpu::Client.
  void deliver(ModelId model, std::vector<gpu::Delivery> pairs, bool early) override;
  gpu::SampleRequest sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks) override;
  void targets_wait() override { agenda_.device_waits(); }
  void stopped(const Error& reason, bool ends) override {
    if (ends) agenda_.abort(reason);
  }
  gpu::HostLoad load() const override;
  void warn_of_threads();
  SearchStatistics statistics();

  const SearchOptions& options_;
  SearchProgress& progress_;
  // Statistics of input and results; one thread at a time writes each part.
  SearchStatistics sums_;
  const RunLimits limits_;
  gpu::GpuFilters* const device_ = limits_.device;
  std::atomic<bool> device_has_delivered_{false};
  Agenda agenda_;  // before all that hold blocks
  ModelInput models_;
  TargetInput targets_;
  ResultSink& sink_;
  KeptHits hits_;
  Verifier verifier_;
  Scorer scorer_;
  const double begun_ = Trace::now();
  ThreadStates threads_;
  Workers workers_;
};

Run::Run(const SearchOptions& options, std::uint64_t available, const ModelSource& models,
         TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink, SearchProgress& progress)
    : options_(options),
      progress_(progress),
      limits_(options, available, targets.bytes_total(), device),
      agenda_({.in_flight = {.model_bytes = limits_.memory.models,
                             .target_bytes = limits_.memory.targets,
                             .threads = limits_.threads,
                             .device = device_ != nullptr},
               .result_bytes = limits_.memory.results,
               .task_cells = options.task_cells,
               .batch_rows = limits_.memory.batch_rows},
              progress),
      models_(models),
      targets_(targets, limits_.block_residues, progress, sums_),
      sink_(sink),
      hits_(options, sink.takes_stored_hits(), limits_.memory.results,
            expected_models(limits_.threads, device_ != nullptr)),
      verifier_(options, progress, limits_.alone),
      scorer_(options, limits_.shared, limits_.alone, verifier_),
      workers_(limits_.threads, options.lower_priority, [this] { warn_of_threads(); }) {
  targets.limit_targets(limits_.memory.one_target);
  targets.limit_ahead(limits_.memory.ahead);
}

void Run::warn_of_threads() {
  agenda_.limit_workers(workers_.threads());
  if (!options_.on_warning) return;
  options_.on_warning({ErrorCode::kResources,
                       "only " + std::to_string(workers_.threads()) + " of " +
                           std::to_string(limits_.threads) + " threads could be started",
                       {},
                       "raise the limits on processes (ulimit -u) or memory (ulimit -v)"});
}

Result<SearchStatistics> Run::run(LateModels* late) {
  {
    // Whatever ends later finds the search stopped.
    const AtEnd stop{[this, late] {
      if (late != nullptr) late->listen(nullptr);
      agenda_.stop();
      if (device_ != nullptr) device_->detach();
    }};
    if (late != nullptr) {
      late->listen([this] {
        models_.reopen();
        agenda_.more_models();
      });
    }
    if (device_ != nullptr) guarded([this] { attach_device(); });
    workers_.run([this] { guarded([this] { work(); }); });
  }
  if (auto error = agenda_.error()) {
    // Where memory ran out there was none for a remedy.
    if (error->code == ErrorCode::kResources && error->remedy.empty())
      error->remedy = "use fewer threads (--cpu) or split the input";
    return std::unexpected(*std::move(error));
  }
  SearchStatistics out = statistics();
  out.wall_seconds = Trace::now() - begun_;
  return out;
}

void Run::attach_device() {
  const FilterOptions& f = options_.filters;
  std::optional<std::uint32_t> trace_seed;
  if (options_.domain.reseed) trace_seed = options_.domain.seed;
  device_->attach(*this, agenda_.board(),
                  {.F1 = f.F1,
                   .F2 = f.F2,
                   .F3 = f.F3,
                   .bias = f.bias,
                   .trace_seed = trace_seed,
                   .list_failed = f.per_target != nullptr},
                  limits_.memory.device);
}

void Run::guarded(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    agenda_.abort({ErrorCode::kResources, "out of memory", {}, {}});
  } catch (...) {
    agenda_.stop();
    throw;
  }
}

void Run::work() {
  Agenda::Worker me;
  for (;;) {
    const Work work = agenda_.next(me);
    if (std::holds_alternative<End>(work)) return;
    if (agenda_.wants_worker()) workers_.add();
    if (options_.on_progress) options_.on_progress();
    if (options_.cancellation != nullptr && options_.cancellation->cancelled())
      return agenda_.abort({ErrorCode::kInterrupted, "the search was cancelled", {}, {}});
    // Before the work, which may release the model.
    const std::string name = options_.trace != nullptr ? name_of(work) : "";
    const double begun = Trace::now();
    const Status status = std::visit([this](const auto& w) { return perform(w); }, work);
    if (options_.trace != nullptr) options_.trace->add("cpu", name, begun, Trace::now());
    if (!status) agenda_.abort(status.error());
  }
}

Status Run::perform(const SetUpModel& work) {
  const double begun = Trace::now(), used = thread_seconds();
  std::size_t index = 0;
  Result<JobPtr> job = nullptr;
  if (auto query = models_.next(index); !query) {
    job = std::unexpected(query.error());
  } else if (*query) {
    const Recipient recipient = (*query)->recipient.value_or(Recipient{&sink_, index});
    job = set_up(**std::move(query), index, options_, begun);
    if (job) {
      (*job)->recipient = recipient;
    } else if (recipient.sink->take_error(recipient.index, job.error())) {
      agenda_.done(work, empty_result(recipient));
      return {};
    }
  }
  if (job && *job != nullptr) {
    ++progress_.models_started;
    const double seconds = thread_seconds() - used;
    threads_.local().setup_seconds += seconds;
    const MutexLock lock((*job)->mutex);
    (*job)->cpu_seconds = seconds;
  }
  // Before the first pair: a device must know its model.
  if (device_ != nullptr && job && *job != nullptr)
    device_->add_model(index, (*job)->prepared->model());
  agenda_.done(work, index, std::move(job));
  if (device_ != nullptr) device_->look_at_board();
  return {};
}

Status Run::perform(const ReadBlock& work) {
  HMMJIT_ASSIGN(std::optional<TargetBlock> targets, targets_.next());
  BlockPtr block;
  if (targets) block = std::make_shared<Block>(agenda_, *std::move(targets));
  if (device_ != nullptr && block != nullptr) device_->add_block({block->id, targets_of(block)});
  const bool last = agenda_.done(work, std::move(block), targets_.read_ahead_threads());
  if (device_ == nullptr) return {};
  if (last) device_->end_blocks();
  device_->look_at_board();
  return {};
}

// As a task of its own, so that no more threads are busy than the user allows. A single thread
// reads nothing ahead.
Status Run::perform(const ReadAhead& work) {
  const double used = thread_seconds();
  while (!agenda_.stopped() && targets_.read_ahead()) {
  }
  threads_.local().read_ahead_seconds += thread_seconds() - used;
  agenda_.done(work);
  return {};
}

Status Run::perform(const BeginBatch& work) {
  if (targets_.needs_copy() && models_.has_more()) HMMJIT_TRY(targets_.copy(work.blocks));
  if (device_ != nullptr) {
    device_->set_streaming();
    device_->end_blocks();
  }
  agenda_.done(work);
  return {};
}

Status Run::perform(const NextPass& work) {
  const bool more = models_.has_more();
  if (more) HMMJIT_TRY(targets_.rewind());
  agenda_.done(work, more);
  return {};
}

Status Run::perform(const Backfill& work) {
  agenda_.done(work, device_->backfill(work.load));
  return {};
}

Status Run::perform(const FilterRange& work) {
  HMMJIT_ASSIGN(std::vector<WaitingTarget> found, filter(work, threads_.local(), progress_));
  agenda_.done(work, std::move(found));
  return {};
}

Status Run::perform(const FilterPair& work) {
  WorkBoard& board = agenda_.board();
  const std::uint64_t model = work.job->index;
  Agenda::PairOutcome outcome;
  const bool open = board.is_open(model, work.block);
  if (!open || !device_->serves(model, work.block)) {
    TargetsPtr targets = board.take_for_host(model, work.block);
    if (targets != nullptr && open) {
      // A device may still claim other pairs, so this one is done at once and whole.
      const FilterRange whole{work.job, targets, 0, targets->size()};
      HMMJIT_ASSIGN(outcome.found, filter(whole, threads_.local(), progress_));
    } else {
      outcome.divide = std::move(targets);
    }
    device_->pair_taken();
  }
  agenda_.done(work, std::move(outcome));
  return {};
}

Status Run::perform(const FilterRest& work) {
  ThreadState& local = threads_.local();
  for (const DeviceUnit& unit : work.units)
    HMMJIT_TRY(verifier_.check_block(*work.job, *unit.targets, unit.filtered.sample, local));
  HMMJIT_ASSIGN(std::vector<WaitingTarget> found, filter(work, local, progress_));
  agenda_.done(work, std::move(found));
  return {};
}

Status Run::perform(const ScoreBatch& work) {
  auto scored = scorer_.score(*work.job, work.targets, threads_.local());
  if (!scored) {
    const Recipient& recipient = work.job->recipient;
    if (!recipient.sink->take_error(recipient.index, scored.error()))
      return std::unexpected(std::move(scored).error());
    agenda_.done(work, 0);
    return {};
  }
  progress_.scoring_cells += scored->cells;
  progress_.scoring_microseconds += static_cast<std::uint64_t>(1e6 * scored->seconds);
  HMMJIT_TRY(hits_.add(*work.job, scored->hits));
  agenda_.done(work, scored->seconds);
  return {};
}

Status Run::perform(const FinishModel& work) {
  if (device_ != nullptr) {
    device_->remove_model(work.job->index);
    agenda_.board().remove_model(work.job->index);
  }
  HMMJIT_ASSIGN(FinishedPtr finished, finish(*work.job, options_, hits_, agenda_));
  agenda_.done(work, std::move(finished));
  return {};
}

Status Run::perform(const FormatPart& work) {
  const double used = thread_seconds();
  const bool complete = make_part(work);
  threads_.local().report_seconds += thread_seconds() - used;
  agenda_.done(work, complete);
  return {};
}

Status Run::perform(const DeliverResult& work) {
  HMMJIT_TRY(deliver_result(work.finished->result, *work.finished->sink, progress_, sums_));
  agenda_.done(work);
  return {};
}

void Run::deliver(ModelId model, std::vector<gpu::Delivery> pairs, bool early) {
  device_has_delivered_ = true;
  const JobPtr job = agenda_.find(model);
  std::vector<DeviceUnit> units;
  units.reserve(pairs.size());
  for (gpu::Delivery& pair : pairs) {
    pair.claim.finish();
    DeviceUnit& unit = units.emplace_back(std::move(pair.targets), std::move(pair.found));
    unit.cells = passed_cells(*job, unit);
  }
  agenda_.deliver(model, std::move(units), early);
}

gpu::SampleRequest Run::sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                               std::size_t blocks) {
  const JobPtr job = agenda_.find(model);
  return job == nullptr ? gpu::SampleRequest{} : verifier_.sample(*job, kernels, blocks);
}

gpu::HostLoad Run::load() const { return agenda_.load(Trace::now() - begun_); }

SearchStatistics Run::statistics() {
  SearchStatistics out = sums_;
  out.backend = host_filters_name();
  // A device that was lost has no name.
  const std::string device = device_has_delivered_ ? device_->name() : std::string();
  if (!device.empty()) out.backend = device + "+" + out.backend;
  out.threads = workers_.threads();
  out.scored_alone = scorer_.scored_alone();
  out.models = agenda_.results_delivered();
  out.streamed = agenda_.streamed();
  verifier_.add_to(out);
  threads_.for_each([&out](const ThreadState& local) {
    out.filters += local.times;
    out.scoring_seconds += local.scoring_seconds;
    out.setup_seconds += local.setup_seconds;
    out.report_seconds += local.report_seconds;
    out.read_seconds += local.read_ahead_seconds;
    out.domain += local.workspace.times();
    out.domain += local.alone_times;
  });
  return out;
}

}  // namespace
}  // namespace search_run

void LateModels::announce() {
  const MutexLock lock(mutex_);
  if (listener_) listener_();
}

void LateModels::listen(std::function<void()> listener) {
  const MutexLock lock(mutex_);
  listener_ = std::move(listener);
}

double SearchProgress::filter_seconds_left(double seconds) const {
  const auto done = static_cast<double>(cells.load()),
             known = static_cast<double>(cells_queued.load()),
             read = static_cast<double>(target_bytes_read.load()),
             all = static_cast<double>(target_bytes_total.load());
  if (done <= 0) return 0;
  const double unread = read > 0 ? std::max(all / read, 1.0) : 1;  // nothing read: all in memory
  return std::max(0.0, known * unread / done - 1) * seconds;
}

void add(SearchStatistics& sum, const SearchStatistics& other) {
  if (sum.backend.empty()) {
    sum = other;
    return;
  }
  sum.models += other.models;
  if (other.bytes_read > 0) sum.passes += other.passes;  // otherwise the targets were in memory
  sum.streamed |= other.streamed;
  sum.spooled |= other.spooled;
  sum.scored_alone += other.scored_alone;
  sum.wall_seconds += other.wall_seconds;
  sum.bytes_read += other.bytes_read;
  sum.read_seconds += other.read_seconds;
  sum.setup_seconds += other.setup_seconds;
  sum.report_seconds += other.report_seconds;
  sum.filters += other.filters;
  sum.scoring_seconds += other.scoring_seconds;
  sum.domain += other.domain;
  sum.counters += other.counters;
  sum.hits_reported += other.hits_reported;
  sum.domains_reported += other.domains_reported;
  sum.verified += other.verified;
  sum.verified_chains += other.verified_chains;
  sum.verify_seconds += other.verify_seconds;
}

QueryNames names_of(const TargetView& sequence) {
  QueryNames names{std::string(sequence.name)};
  if (!sequence.accession.empty()) names.accession.emplace(sequence.accession);
  if (!sequence.description.empty()) names.description.emplace(sequence.description);
  return names;
}

void set_seed(domain::DomainOptions& domain, std::uint32_t seed) {
  domain.reseed = seed != 0;
  domain.seed = seed != 0 ? seed : random_seed();
}

Result<MemoryGrant> grant_memory(const SearchOptions& options) {
  HMMJIT_ASSIGN(const MemoryGrant grant,
                grant_memory(options.memory, std::max(1, options.threads)));
  if (grant.threads < options.threads && options.on_warning) {
    options.on_warning({ErrorCode::kResources,
                        "only " + std::to_string(grant.threads) + " of " +
                            std::to_string(options.threads) +
                            " threads are used: the control group of this process has " +
                            std::to_string(*grant.group_left >> 20) + " MiB of memory left",
                        {},
                        "raise the memory limit of the job, container or control group"});
  }
  return grant;
}

Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink,
                                SearchProgress* progress, LateModels* late) {
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(options));
  SearchOptions granted = options;
  granted.memory = grant.bound;
  granted.threads = grant.threads;
  SearchProgress unused;
  Result<SearchStatistics> statistics =
      search_run::Run(granted, grant.available, models, targets, device, sink,
                      progress != nullptr ? *progress : unused)
          .run(late);
  if (device != nullptr) device->release_unknown_targets();
  return statistics;
}

}  // namespace hmmjit
