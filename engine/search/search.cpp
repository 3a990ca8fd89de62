#include "search/search.hpp"

#include <algorithm>

#include "core/memory.hpp"
#include "search/search_run.hpp"

namespace hmmjit {
namespace search_run {
namespace {

// What the parts of a search may hold, in bytes.
struct MemoryShares {
  std::uint64_t bound, targets, models, results;
  std::size_t matrix_shared, matrix_alone;  // one matrix of each thread; of a thread on its own
};

MemoryShares divide_memory(const SearchOptions& options, int threads) {
  constexpr std::uint64_t kThreadMatrixBytes = std::uint64_t{5}
                                               << 19;              // of kThreadMemory, one of two
  constexpr std::uint64_t kSmallestRest = std::uint64_t{4} << 10;  // no share is nothing
  const auto count = static_cast<std::uint64_t>(threads);
  const std::uint64_t available = available_memory();
  const std::uint64_t bound = options.memory;
  const std::uint64_t fixed = kProgramMemory + count * kThreadMemory;
  // A bound below what every search needs cannot hold; it still makes everything else small.
  const std::uint64_t rest = std::max({bound - std::min(bound, fixed), bound / 4, kSmallestRest});
  MemoryShares shares{.bound = bound,
                      .targets = rest / 20 * 7,
                      .models = rest / 4,
                      .results = rest / 10,
                      .matrix_shared = 0,
                      .matrix_alone = available / 10 * 3};
  // A matrix for alignments has a second one beside it. One that no share has room for must not
  // stop the search: it is made when no other thread has such a one, and given back.
  shares.matrix_shared = std::min<std::uint64_t>(kThreadMatrixBytes + rest / 10 * 3 / (2 * count),
                                                 available / 10 * 3 / (2 * count));
  if (options.domain.max_matrix_bytes > 0) {
    shares.matrix_alone = options.domain.max_matrix_bytes;
    shares.matrix_shared = shares.matrix_alone / (2 * count);
  }
  shares.matrix_shared = std::max<std::size_t>(1, shares.matrix_shared);
  return shares;
}

// Of an allocation, beyond what was asked for.
constexpr std::size_t kOfAllocation = 16;

std::size_t hit_bytes(const Hit& hit) {
  std::size_t bytes = sizeof(Hit) + hit.name.size() + hit.description.size();
  for (const domain::Domain& domain : hit.score.domains)
    bytes += sizeof(domain::Domain) + 6 * (domain.alignment.model.capacity() + kOfAllocation);
  return bytes;
}

std::size_t hit_bytes(const std::vector<Hit>& hits) {
  std::size_t bytes = 0;
  for (const Hit& hit : hits) bytes += hit_bytes(hit);
  return bytes;
}

}  // namespace

Block::~Block() { run.block_released(id, bytes); }

Run::Run(const SearchOptions& options, const ModelSource& models, TargetSource& targets,
         FilterBackend& backend, ResultSink& sink, SearchProgress& progress)
    : options_(options),
      models_(models),
      input_(&targets),
      backend_(backend),
      sink_(sink),
      progress_(progress),
      verification_(options.verify),
      pool_(std::max(1, options.threads), options.lower_priority, [this] { warn_of_threads(); }) {
  const MemoryShares memory = divide_memory(options, pool_.threads());
  target_budget_ = memory.targets;
  model_budget_ = memory.models;
  result_budget_ = memory.results;
  const auto threads = static_cast<std::uint64_t>(pool_.threads());
  low_water_ = 2 * threads + 1;
  max_active_ = 2 * threads + 2;
  task_cells_ = options.task_cells;
  // With both limits at 1 nothing is turned away (--max): a device has nothing to do.
  if (options.filters.F1 < 1.0) device_ = backend.device();
  if (device_ != nullptr) {
    // Copies in device layout on their way to it.
    device_host_bytes_ = target_budget_ / 4;
    target_budget_ -= device_host_bytes_;
  }
  // The rest of a bound can be one target. The least is what every bound has room for.
  targets.limit_targets(std::max<std::uint64_t>(memory.bound / 2, std::uint64_t{1} << 24));
  block_residues_ = std::clamp<std::uint64_t>(target_budget_ / 8, 4096, options.block_residues);
  alone_options_ = shared_options_ = options.domain;
  alone_options_.max_matrix_bytes = memory.matrix_alone;
  shared_options_.max_matrix_bytes = memory.matrix_shared;
}

void Run::warn_of_threads() {
  if (!options_.on_warning) return;
  options_.on_warning("only " + std::to_string(pool_.threads()) + " of " +
                      std::to_string(options_.threads) +
                      " threads could be started; raise the limits on processes (ulimit -u) or "
                      "memory (ulimit -v)");
}

Result<SearchStatistics> Run::run() {
  const double begun = now_seconds();
  struct Detach {
    gpu::GpuFilters* device;
    ~Detach() {
      if (device != nullptr) device->detach();
    }
  };
  try {
    const Detach detach{device_};
    pool_.run([this] { start(); });
  } catch (const std::bad_alloc&) {  // of the pool itself
    abort_out_of_memory();
  } catch (...) {
    stopped_ = true;  // before members are destroyed
    throw;
  }
  stopped_ = true;  // blocks released from here on must not start anything
  if (error_) return std::unexpected(*error_);
  if (!models_ended_ || active_ != 0 || !done_.empty() || !again_.empty())
    return fail(ErrorCode::kInternal, "the search stopped before it was complete");
  collect_statistics();
  statistics_.wall_seconds = now_seconds() - begun;
  return statistics_;
}

void Run::block_released(BlockId block, std::size_t bytes) noexcept {
  in_flight_bytes_ -= bytes;
  if (stopped()) return;  // perhaps together with the board
  board_.remove_block(block);
  try {
    resume_reading();
  } catch (const std::bad_alloc&) {
    abort_out_of_memory();
  }
}

void Run::start() {
  if (device_ != nullptr) {
    pool_.hold();
    const FilterOptions& f = options_.filters;
    std::optional<std::uint32_t> trace_seed;
    if (options_.domain.reseed) trace_seed = options_.domain.seed;
    device_->attach(*this, board_,
                    {.F1 = f.F1, .F2 = f.F2, .F3 = f.F3, .bias = f.bias, .trace_seed = trace_seed},
                    device_host_bytes_);
  }
  start_models();
  resume_reading();
}

void Run::abort_out_of_memory() noexcept {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(out_of_memory_);
  if (device_ != nullptr) pool_.release();
}

void Run::abort_run(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  if (device_ != nullptr) pool_.release();
}

void Run::release_pool_if_done() {
  if (device_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped() && !(models_ended_ && active_ == 0 && preparing_ == 0 && again_.empty())) return;
  }
  pool_.release();
}

void Run::fail_model(std::size_t index, Error error) {
  {
    const std::lock_guard lock(mutex_);
    models_ended_ = true;
    --preparing_;
    if (!model_error_ || index < model_error_->first) model_error_.emplace(index, std::move(error));
  }
  after_model_change();
}

void Run::release(const JobPtr& job) {
  if (--job->pending == 0 && !stopped()) finish(*job);
}

void Run::finish(ModelJob& job) {
  const auto finished = std::make_shared<Finished>();
  ModelResult& result = finished->result;
  result.index = job.index;
  const Hmm& hmm = job.model->hmm;
  bool wrong = false;
  std::vector<Hit> hits;
  std::set<gpu::UsedKernel> kernels;
  {
    const std::lock_guard lock(job.mutex);
    wrong = job.spoiled;
    job.finished = true;
    hits.swap(job.hits);
    kernels.swap(job.kernels);
    let_go_of_hits(job);
  }
  if (!wrong) {
    result.model = {hmm.name, hmm.accession, hmm.description, hmm.M, hmm.consensus};
    result.calibration = hmm.calibration;
    if (job.sequence) {
      result.model.built = {hmm.name, hmm.accession, hmm.description};
      result.model.name = job.sequence->name;
      result.model.accession = job.sequence->accession;
      result.model.description = job.sequence->description;
    }
    auto list = finished_hits(job, hits, *finished);
    if (!list) return abort_run(list.error());
    result.hits = *std::move(list);
    result.seconds = now_seconds() - job.begun;
    result.cpu_seconds = job.cpu_seconds;
    result.alignments = options_.keep_alignments;
    if (!kernels.empty()) {
      auto retained = retain(job, std::move(kernels), result);
      if (!retained) return abort_run(retained.error());
      finished->retained = *std::move(retained);
    }
  }
  if (device_ != nullptr && !job.again) {
    device_->remove_model(job.index);
    board_.remove_model(job.index);
  }
  const bool delivered = job.expected.has_value();
  if (delivered) confirm(job, result);
  {
    const std::lock_guard lock(mutex_);
    if (!job.again) device_jobs_.erase(job.index);
    active_bytes_ -= job.bytes;
    if (wrong) again_.push_back({job.index, query_of(job), std::nullopt});
    if (wrong || delivered) {
      --active_;
      expected_bytes_ -= finished->expected_bytes;
    }
  }
  job.forward_tables.reset();
  job.filters.reset();
  job.model.reset();
  if (wrong || delivered) {
    after_model_change();
    return next_pass();
  }
  if (result.stored == nullptr) result.prepared = sink_.prepare(result);
  const std::size_t parts = result.prepared == nullptr ? 0 : result.prepared->parts();
  finished->parts_left = std::max<std::size_t>(parts, 1);
  // The text of a family of thousands takes longer than the last tasks of the search.
  for (std::size_t part = 1; part < parts; ++part)
    submit_task(TaskClass::kControl, 0, [this, finished, part] { make_part(finished, part); });
  make_part(finished, 0);
}

// Of hits that are stored, in memory.
constexpr std::size_t kSmallestRun = std::size_t{64} << 10;

// With the job's mutex held.
void Run::let_go_of_hits(ModelJob& job) { held_hit_bytes_ -= std::exchange(job.hit_bytes, 0); }

Status Run::keep_hits(ModelJob& job, std::vector<Hit>& hits) {
  if (hits.empty()) return {};
  const std::size_t bytes = hit_bytes(hits);
  std::vector<Hit> over;
  {
    const std::lock_guard lock(job.mutex);
    std::ranges::move(hits, std::back_inserter(job.hits));
    job.hit_bytes += bytes;
    held_hit_bytes_ += bytes;
    const std::uint64_t most = result_budget_ / 2;
    // A job that has little leaves it to those that have more: runs on disk should not be small.
    const std::uint64_t jobs = device_ == nullptr ? max_active_ : 8 * max_active_;
    const std::uint64_t little = std::max<std::uint64_t>(most / (2 * jobs), kSmallestRun);
    if (!sink_.takes_stored_hits() || held_hit_bytes_ <= most || job.hit_bytes < little) return {};
    over.swap(job.hits);
    let_go_of_hits(job);
  }
  return store_hits(job, over);
}

Status Run::store_hits(ModelJob& job, std::vector<Hit>& hits) {
  constexpr std::uint64_t kLeast = std::uint64_t{256} << 10;
  const std::lock_guard lock(job.storing);
  if (job.stored == nullptr)
    job.stored = std::make_shared<StoredHits>(job.thresholds, options_.keep_alignments,
                                              std::max(result_budget_ / 2, kLeast));
  return job.stored->add(hits);
}

Result<HitList> Run::finished_hits(ModelJob& job, std::vector<Hit>& hits, Finished& finished) {
  // With the text that is made of it, in several outputs.
  constexpr std::size_t kOfText = 4;
  const std::size_t bytes = kOfText * hit_bytes(hits);
  bool fits = job.stored == nullptr;
  if (fits) {
    const std::lock_guard lock(mutex_);
    fits = !sink_.takes_stored_hits() || bytes <= kSmallestRun ||
           undelivered_bytes_ + expected_bytes_ + bytes <= result_budget_;
    if (fits) expected_bytes_ += finished.expected_bytes = bytes;
  }
  if (fits)
    return finish_hits(job.thresholds, std::move(hits), job.counters, options_.whole_targets);
  HMMJIT_TRY(store_hits(job, hits));
  HMMJIT_ASSIGN(HitList list, job.stored->finish(job.counters, options_.whole_targets));
  // Results by target are as wide as the names of all candidates.
  if (list.reported > 0 || (options_.by_target && list.candidates > 0))
    finished.result.stored = std::move(job.stored);
  job.stored.reset();
  return list;
}

void Run::make_part(const FinishedPtr& finished, std::size_t part) {
  if (stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  ModelResult& result = finished->result;
  if (result.prepared != nullptr) result.prepared->make(part);
  locals_.local().report_seconds += thread_seconds() - used;
  trace("report", begun);
  if (--finished->parts_left > 0) return;
  std::size_t bytes = sizeof result + finished->retained.bytes;
  bytes += hit_bytes(result.hits.hits);
  if (result.prepared != nullptr) bytes += result.prepared->bytes();
  {
    const std::lock_guard lock(mutex_);
    --active_;
    expected_bytes_ -= finished->expected_bytes;
    Retained& retained = finished->retained;
    if (distrusted(retained.kernels)) {
      again_.push_back({result.index, std::move(retained.query), std::nullopt});
    } else {
      undelivered_bytes_ += bytes;
      done_.emplace(result.index, Done{std::move(result), bytes, std::move(retained)});
    }
  }
  after_model_change();
  next_pass();
}

void Run::deliver() {
  std::unique_lock lock(mutex_);
  if (delivering_) return;
  delivering_ = true;
  bool any = false;
  while (!stopped()) {
    if (model_error_ && model_error_->first == delivered_) {
      error_ = model_error_->second;
      stopped_ = true;
      break;
    }
    const auto found = done_.find(delivered_);
    if (found == done_.end() || holds_back()) break;
    auto [result, bytes, retained] = std::move(found->second);
    done_.erase(found);
    keep_delivered(std::move(retained));
    lock.unlock();
    const double begun = now_seconds(), used = thread_seconds();
    statistics_.counters += result.hits.counters;
    statistics_.hits_reported += result.hits.reported;
    for (const Hit& hit : result.hits.hits)
      statistics_.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
    const Status status = sink_.receive(result);
    if (result.stored != nullptr) statistics_.domains_reported += result.stored->domains_reported();
    statistics_.report_seconds += thread_seconds() - used;
    trace("output", begun);
    lock.lock();
    if (!status) {
      if (!error_) error_ = status.error();
      stopped_ = true;
    }
    undelivered_bytes_ -= bytes;
    ++delivered_;
    progress_.models_done = delivered_;
    any = true;
  }
  delivering_ = false;
  lock.unlock();
  if (any) start_models();
  release_pool_if_done();
}

void Run::collect_statistics() {
  statistics_.backend = backend_.name();
  if (device_ != nullptr && device_->statistics().blocks_done > 0)
    statistics_.backend = device_->name() + "+" + statistics_.backend;
  statistics_.threads = pool_.threads();
  statistics_.models = delivered_;
  statistics_.verified = verification_.checks();
  statistics_.verified_chains = verification_.chains();
  statistics_.verify_seconds = verification_.seconds();
  statistics_.differences = verification_.differences();
  statistics_.searched_again = searched_again_;
  locals_.for_each([this](const ThreadState& local) {
    statistics_.filters += local.times;
    statistics_.scoring_seconds += local.scoring_seconds;
    statistics_.forward_cells += local.forward_cells;
    statistics_.setup_seconds += local.setup_seconds;
    statistics_.report_seconds += local.report_seconds;
    statistics_.read_seconds += local.decode_seconds;
    statistics_.domain += local.workspace.times();
    statistics_.domain += local.alone_times;
  });
}

}  // namespace search_run

Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                TargetSource& targets, FilterBackend& backend, ResultSink& sink,
                                SearchProgress* progress) {
  HMMJIT_ASSIGN(const MemoryGrant grant,
                grant_memory(options.memory, std::max(1, options.threads)));
  SearchOptions granted = options;
  granted.memory = grant.bound;
  granted.threads = grant.threads;
  if (grant.threads < options.threads && options.on_warning) {
    options.on_warning(
        "only " + std::to_string(grant.threads) + " of " + std::to_string(options.threads) +
        " threads are used: the control group of this process has " +
        std::to_string(*grant.group_left >> 20) +
        " MiB of memory left; raise the memory limit of the job, container or control group");
  }
  SearchProgress unused;
  search_run::Run run(granted, models, targets, backend, sink,
                      progress != nullptr ? *progress : unused);
  return run.run();
}

}  // namespace hmmjit
