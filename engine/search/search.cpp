#include "search/search.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"
#include "reference/calibrate.hpp"
#include "search/memory.hpp"
#include "search/task_pool.hpp"

namespace hmmjit {
namespace {

// Seconds that a thread takes for one of their cells, until the first have been scored.
constexpr double kFirstCellSeconds = 4e-9;
// Scoring a target costs some ten times as much per cell as filtering it. A target larger than
// this is a task of its own, begun before smaller work; the rest is batched, because equal work of
// different targets shares vectors.
constexpr std::uint64_t kLargeTargetCells = 4'000'000;
// Models beside a device: set up at a time, in flight at most, and their bytes.
constexpr std::size_t kSettingUpBesideDevice = 4, kActiveBesideDevice = 1024;
constexpr std::uint64_t kModelBytesBesideDevice = std::uint64_t{64} << 20;
// Targets scored by one task: enough to fill vectors, few enough to balance.
constexpr std::size_t kSmallestBatch = 8, kLargestBatch = 64;
// Bytes of a model of some 250 nodes: what a model is taken for before any has been seen.
constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

class Run;

// A target block in flight. Whoever holds the last reference gives its bytes back to the run.
struct Block {
  Block(Run& owner, TargetBlock&& content)
      : run(owner), targets(std::move(content)), bytes(targets.bytes()) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Run& run;
  TargetBlock targets;
  std::size_t bytes;
  const std::uint64_t id = next_id();

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> next{1};
    return next++;
  }
};
using BlockPtr = std::shared_ptr<Block>;

// A target that passed the filters, waiting to be scored.
struct WaitingTarget {
  BlockPtr block;
  std::uint32_t index;
  float filter_nats;
  std::uint64_t cells;
  std::uint64_t cells_left;                    // about, of what is not known yet
  std::shared_ptr<const ParsedTarget> parsed;  // null: nothing is known yet
};

// One model while it is searched. `pending` counts its unfinished tasks, `filters_pending` those
// that may still find survivors; both plus one while more targets may come.
struct ModelJob {
  std::size_t index = 0;
  double begun = 0;
  std::shared_ptr<const SearchModel> model;
  std::unique_ptr<PreparedFilters> filters;
  std::once_flag forward_made;
  std::optional<domain::ForwardTables> forward_tables;  // made when first needed
  ModelThresholds thresholds;
  std::size_t bytes = 0;
  std::atomic<std::int64_t> pending{1}, filters_pending{1};

  std::mutex mutex;  // for what follows
  std::vector<WaitingTarget> waiting;
  // Blocks to be filtered by whoever claims them first; used only beside a device.
  struct Unit {
    BlockPtr block;
    std::uint64_t id;
  };
  std::vector<Unit> unclaimed;
  std::uint64_t blocks_offered = 0;
  double cpu_seconds = 0;
  std::vector<Hit> hits;
  FilterCounters counters;

  const domain::ForwardTables& forward() {
    std::call_once(forward_made, [this] { forward_tables.emplace(*model); });
    return *forward_tables;
  }
};
using JobPtr = std::shared_ptr<ModelJob>;

// What one thread keeps from task to task.
struct ThreadState {
  domain::Workspace workspace;
  FilterOutput filtered;
  FilterTimes times;
  double scoring_seconds = 0, setup_seconds = 0, decode_seconds = 0;
  std::uint64_t forward_cells = 0;
  double report_seconds = 0;
  domain::DomainTimes alone_times;  // of workspaces that are gone
  std::vector<TargetView> views;
  std::vector<float> forward_nats;
  std::vector<const ParsedTarget*> parsed;
  std::vector<std::optional<domain::TargetScore>> scores;
};

bool is_memory_error(const std::exception& error) {
  return dynamic_cast<const domain::MatrixTooLarge*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

std::uint64_t microseconds(double seconds) { return static_cast<std::uint64_t>(1e6 * seconds); }

// What the parts of a search may hold, in bytes.
struct MemoryShares {
  std::uint64_t targets, models, results;
  std::size_t matrix_shared, matrix_alone;  // one matrix of each thread; of a thread on its own
};

MemoryShares divide_memory(const SearchOptions& options, int threads) {
  // Code, buffers of readers and writers; of a thread, rows and the matrices of its vectors.
  constexpr std::uint64_t kProgramBytes = std::uint64_t{24} << 20;
  constexpr std::uint64_t kThreadBytes = std::uint64_t{8} << 20;
  constexpr std::uint64_t kThreadMatrixBytes = std::uint64_t{5} << 19;  // among them, one of two
  constexpr std::uint64_t kSmallestRest = std::uint64_t{4} << 10;       // no share is nothing
  const auto count = static_cast<std::uint64_t>(threads);
  const std::uint64_t available = available_memory();
  const std::uint64_t bound = options.memory > 0 ? options.memory : available / 2;
  const std::uint64_t fixed = kProgramBytes + count * kThreadBytes;
  // A bound below what every search needs cannot hold; it still makes everything else small.
  const std::uint64_t rest = std::max({bound - std::min(bound, fixed), bound / 4, kSmallestRest});
  MemoryShares shares{.targets = rest / 20 * 7,
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

std::size_t hit_bytes(const Hit& hit) {
  std::size_t bytes = sizeof(Hit) + hit.name.size() + hit.description.size();
  for (const domain::Domain& domain : hit.score.domains)
    bytes += sizeof(domain::Domain) + 6 * domain.alignment.model.capacity();
  return bytes;
}

class Run : private gpu::Client {
 public:
  Run(const SearchOptions& options, const ModelSource& models, TargetSource& targets,
      FilterBackend& backend, ResultSink& sink, SearchProgress& progress)
      : options_(options),
        models_(models),
        input_(&targets),
        backend_(backend),
        sink_(sink),
        progress_(progress),
        pool_(std::max(1, options.threads), options.lower_priority) {
    const MemoryShares memory = divide_memory(options, pool_.threads());
    target_budget_ = memory.targets;
    model_budget_ = memory.models;
    result_budget_ = memory.results;
    const auto threads = static_cast<std::uint64_t>(pool_.threads());
    low_water_ = 2 * threads + 1;
    max_active_ = 2 * threads + 2;
    task_cells_ = std::max(options.task_cells, backend.preferred_cells());
    // With both limits at 1 nothing is turned away (--max): a device has nothing to do.
    if (options.filters.F1 < 1.0) device_ = backend.device();
    if (device_ != nullptr) {
      // Copies in device layout on their way to it.
      device_host_bytes_ = target_budget_ / 4;
      target_budget_ -= device_host_bytes_;
    }
    block_residues_ = std::clamp<std::uint64_t>(target_budget_ / 8, 4096, options.block_residues);
    alone_options_ = shared_options_ = options.domain;
    alone_options_.max_matrix_bytes = memory.matrix_alone;
    shared_options_.max_matrix_bytes = memory.matrix_shared;
  }

  Result<SearchStatistics> run() {
    const double begun = now_seconds();
    if (pool_.threads() < options_.threads && options_.on_warning)
      options_.on_warning("only " + std::to_string(pool_.threads()) + " of " +
                          std::to_string(options_.threads) +
                          " threads could be started; raise the limit on processes (ulimit -u)");
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
    if (!models_ended_ || active_ != 0 || !done_.empty())
      return fail(ErrorCode::kInternal, "the search stopped before it was complete");
    collect_statistics();
    statistics_.wall_seconds = now_seconds() - begun;
    return statistics_;
  }

  void block_released(std::size_t bytes) noexcept {
    in_flight_bytes_ -= bytes;
    try {
      resume_reading();
    } catch (const std::bad_alloc&) {
      abort_out_of_memory();
    }
  }

 private:
  // ---- control -------------------------------------------------------------------------------

  void start() {
    if (device_ != nullptr) {
      pool_.hold();
      const FilterOptions& f = options_.filters;
      std::optional<std::uint32_t> trace_seed;
      if (options_.domain.reseed) trace_seed = options_.domain.seed;
      device_->attach(
          *this, {.F1 = f.F1, .F2 = f.F2, .F3 = f.F3, .bias = f.bias, .trace_seed = trace_seed},
          device_host_bytes_);
    }
    start_models();
    resume_reading();
  }

  // Allocates nothing: the error is ready.
  void abort_out_of_memory() noexcept {
    stopped_ = true;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(out_of_memory_);
    if (device_ != nullptr) pool_.release();
  }

  // For what threads of the device call.
  template <typename Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      abort_out_of_memory();
    }
  }

  // Every task of the run goes through here: one that runs out of memory ends the run.
  template <typename Work>
  void submit_task(TaskClass task_class, double rank, Work&& work) {
    pool_.submit(task_class, rank, [this, work = std::forward<Work>(work)] {
      try {
        if (options_.cancelled && !stopped() && options_.cancelled())
          abort_run({ErrorCode::kInterrupted, "the search was cancelled", {}, {}});
        work();
      } catch (const std::bad_alloc&) {
        abort_out_of_memory();
      }
    });
  }

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // An error that ends the whole search at once.
  void abort_run(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stopped_ = true;
    if (device_ != nullptr) pool_.release();
  }

  // Beside a device the pool is held open; lets go once nothing can come any more.
  void release_pool_if_done() {
    if (device_ == nullptr) return;
    {
      const std::lock_guard lock(mutex_);
      if (!stopped() && !(models_ended_ && active_ == 0 && preparing_ == 0)) return;
    }
    pool_.release();
  }

  // An error of one model: the models before it are finished and delivered first.
  void fail_model(std::size_t index, Error error) {
    {
      const std::lock_guard lock(mutex_);
      models_ended_ = true;
      --preparing_;
      if (!model_error_ || index < model_error_->first)
        model_error_.emplace(index, std::move(error));
    }
    after_model_change();
  }

  // ---- models --------------------------------------------------------------------------------

  // With mutex_ held.
  bool may_start_model() const {
    if (stopped() || models_ended_) return false;
    // Models wait for the end of the targets, which may be slow to come: the bound holds from the
    // first model on. What is being set up has no size yet.
    const std::size_t expected = active_bytes_ + model_estimate_ * (preparing_ + 1);
    if (active_ + preparing_ > 0 && expected > model_budget_) return false;
    if (streaming_) return filling_ && preparing_ < max_active_;
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

  void start_models() {
    std::size_t count = 0;
    {
      const std::lock_guard lock(mutex_);
      while (may_start_model()) {
        ++preparing_;
        ++count;
      }
    }
    for (std::size_t i = 0; i < count; ++i)
      submit_task(TaskClass::kControl, 0, [this] { set_up_model(); });
  }

  // The next model and its index, nullopt at the end.
  Result<std::optional<Hmm>> next_model(std::size_t& index) {
    const std::lock_guard lock(models_mutex_);
    index = next_index_;
    if (peeked_) {
      std::optional<Hmm> hmm = std::exchange(peeked_, std::nullopt);
      ++next_index_;
      return hmm;
    }
    if (models_at_end_) return std::nullopt;
    auto hmm = models_();
    if (!hmm || !*hmm) models_at_end_ = true;
    if (!hmm || *hmm) ++next_index_;
    return hmm;
  }

  // True when a further model exists; an error counts, the set-up will meet it again.
  bool more_models() {
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

  void set_up_model() {
    if (stopped()) return;
    const double begun = now_seconds(), used = thread_seconds();
    std::size_t index = 0;
    if (peek_error_) return fail_model(next_index_, *peek_error_);
    auto hmm = next_model(index);
    if (!hmm) return fail_model(index, hmm.error());
    if (!*hmm) {
      {
        const std::lock_guard lock(mutex_);
        models_ended_ = true;
        --preparing_;
      }
      return after_model_change();
    }
    auto thresholds = thresholds_for(options_.thresholds, **hmm);
    if (!thresholds) return fail_model(index, thresholds.error());

    // Imported models bring no score statistics; a simulation gives hmmsearch's.
    if ((*hmm)->needs_calibration) {
      (*hmm)->calibration = reference::calibrate(**hmm);
      (*hmm)->needs_calibration = false;
    }
    auto job = std::make_shared<ModelJob>();
    job->index = index;
    job->begun = begun;
    job->thresholds = *std::move(thresholds);
    job->model = make_search_model(*std::move(*hmm));
    auto filters = backend_.prepare(*job->model, options_.filters);
    if (!filters) return fail_model(index, filters.error());
    job->filters = *std::move(filters);
    job->bytes = model_bytes(*job);
    job->cpu_seconds = thread_seconds() - used;
    ++progress_.models_started;
    locals_.local().setup_seconds += job->cpu_seconds;
    trace("set-up", begun);
    activate(job);
  }

  static std::size_t model_bytes(const ModelJob& job) {
    // Profile and odds, twice (natural and striped), bytes, words and the core model.
    const auto nodes = static_cast<std::size_t>(job.model->hmm.M) + 16;
    return nodes * (3 * kMaxCodes * sizeof(float) + kMaxCodes * 3 + 60 * sizeof(float)) +
           job.filters->bytes() + 4096;
  }

  void activate(const JobPtr& job) {
    std::vector<BlockPtr> blocks;
    bool complete = false;
    // First of all: the reading task may offer blocks of a job as soon as it can see it.
    if (device_ != nullptr) device_->add_model(job->index, job->model);
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
      if (device_ != nullptr) device_jobs_.emplace(job->index, job);
    }
    for (const BlockPtr& block : blocks) submit_filters(job, block);
    end_of_input(job);  // or of the hold
    after_model_change();
  }

  // Something about the set of models changed: start more, or go on with the targets.
  void after_model_change() {
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

  // ---- targets -------------------------------------------------------------------------------

  // Starts the reading task unless it runs, or waits for memory, or there is nothing to read.
  void resume_reading() {
    {
      const std::lock_guard lock(mutex_);
      if (reading_ || input_ended_ || filling_ || stopped()) return;
      if (streaming_ && in_flight_bytes_ >= target_budget_) return;
      if (models_ended_ && active_ == 0 && preparing_ == 0) return;
      reading_ = true;
    }
    submit_task(TaskClass::kControl, 1, [this] { read_targets(); });
  }

  // Decompressing ahead of the reading task is work like any other: a task, so that no more
  // threads are busy than was asked for. A single thread decompresses as it reads.
  void decode_ahead() {
    if (!input_->compressed() || pool_.threads() == 1 || decoding_ahead_.exchange(true)) return;
    submit_task(TaskClass::kControl, 0, [this, input = input_] {
      const double begun = now_seconds(), used = thread_seconds();
      while (!stopped() && input->decode_ahead()) {
      }
      locals_.local().decode_seconds += thread_seconds() - used;
      trace("decompress", begun);
      decoding_ahead_ = false;
    });
  }

  void read_targets() {
    for (;;) {
      if (stopped()) return;
      decode_ahead();
      TargetBlock targets;
      const double begun = now_seconds(), used = thread_seconds();
      auto more = input_->next(targets, block_residues_);
      if (more && *more) targets.shrink_to_fit();
      statistics_.read_seconds += thread_seconds() - used;
      trace("read", begun);
      progress_.target_bytes_read = input_->bytes_read();
      progress_.target_bytes_total = input_->bytes_total();
      if (!more) return abort_run(more.error());
      if (!*more) return end_of_targets();
      if (!add_block(std::make_shared<Block>(*this, std::move(targets)))) return;
    }
  }

  // False when reading must pause: `reading_` is then cleared.
  bool add_block(BlockPtr block) {
    std::vector<JobPtr> jobs;
    bool pause = false, fill = false;
    in_flight_bytes_ += block->bytes;
    if (statistics_.passes == 1) {
      ++statistics_.blocks;
      statistics_.targets += block->targets.size();
      statistics_.residues += block->targets.residue_count();
      progress_.targets = statistics_.targets;
      progress_.residues = statistics_.residues;
      if (spool_) {
        if (auto status = spool_->append(block->targets); !status) {
          abort_run(status.error());
          return false;
        }
      }
    }
    {
      const std::lock_guard lock(mutex_);
      jobs = open_jobs_;
      // Once reading may go on elsewhere, the input may end before this block is submitted.
      for (const JobPtr& job : jobs) hold_job(*job);
      if (!streaming_) {
        blocks_.push_back(block);
        if (in_flight_bytes_ > target_budget_) {
          // The targets do not fit: complete a batch of models, then let blocks go.
          statistics_.streamed = streaming_ = filling_ = fill = pause = true;
        }
      } else {
        pause = in_flight_bytes_ >= target_budget_;
      }
      if (pause) reading_ = false;
    }
    for (const JobPtr& job : jobs) submit_filters(job, block);
    if (device_ != nullptr) {
      device_->add_block({block_id(*block), {block, &block->targets}});
      // A device must not wait for more while reading waits for it.
      if (pause) device_->end_blocks();
    }
    for (const JobPtr& job : jobs) end_of_input(job);
    block.reset();
    if (fill) after_model_change();
    if (pause && !fill) resume_reading();  // the block may have been finished meanwhile
    return !pause;
  }

  void batch_is_filled() {
    // A second pass over a pipe needs a copy of what went by.
    if (statistics_.passes == 1 && !input_->rewindable() && !spool_ && more_models()) {
      auto spool = BlockSpool::create();
      if (!spool) return abort_run(spool.error());
      for (const BlockPtr& block : blocks_) {
        if (auto status = (*spool)->append(block->targets); !status)
          return abort_run(status.error());
      }
      spool_ = *std::move(spool);
      statistics_.spooled = true;
    }
    std::vector<BlockPtr> released;
    std::vector<JobPtr> jobs;
    releasing_blocks_ = true;
    {
      const std::lock_guard lock(mutex_);
      released.swap(blocks_);
      jobs = open_jobs_;
    }
    if (device_ != nullptr) {
      device_->set_streaming();
      device_->end_blocks();
    }
    released.clear();
    // Survivors that began to wait before hold blocks as well.
    for (const JobPtr& job : jobs) submit_waiting(job);
    resume_reading();
  }

  void end_of_targets() {
    std::vector<JobPtr> jobs;
    {
      const std::lock_guard lock(mutex_);
      input_ended_ = true;
      reading_ = false;
      jobs.swap(open_jobs_);
    }
    if (statistics_.passes == 1) statistics_.bytes_read = input_->bytes_read();
    progress_.targets_complete = true;
    if (device_ != nullptr) device_->end_blocks();
    for (const JobPtr& job : jobs) end_of_input(job);
    next_pass();
  }

  // Streaming: when the batch is through, read the input again for the next one.
  void next_pass() {
    {
      const std::lock_guard lock(mutex_);
      if (!streaming_ || !input_ended_ || active_ > 0 || preparing_ > 0 || models_ended_ ||
          reading_ || stopped())
        return;
      reading_ = true;  // keeps others out of here
    }
    if (!more_models()) {
      {
        const std::lock_guard lock(mutex_);
        models_ended_ = true;
      }
      return release_pool_if_done();
    }
    if (spool_) input_ = spool_.get();
    if (auto status = input_->rewind(); !status) return abort_run(status.error());
    {
      const std::lock_guard lock(mutex_);
      ++statistics_.passes;
      input_ended_ = false;
      filling_ = true;
      reading_ = false;
    }
    after_model_change();
  }

  // ---- work ----------------------------------------------------------------------------------

  void submit_filters(const JobPtr& job, const BlockPtr& block) {
    progress_.cells_queued +=
        block->targets.residue_count() * static_cast<std::uint64_t>(job->model->hmm.M);
    if (device_ == nullptr) return submit_ranges(job, block);
    ++job->pending;
    ++job->filters_pending;
    {
      const std::lock_guard lock(job->mutex);
      job->unclaimed.push_back({block, block_id(*block)});
      ++job->blocks_offered;
    }
    // First the offer: a segment without offers may be let go, and a thread that left the block to
    // the device before the device heard of it would leave it to nobody.
    device_->offer(job->index, block_id(*block));
    submit_unit(job, block_id(*block));
  }

  void submit_ranges(const JobPtr& job, const BlockPtr& block) {
    const TargetBlock& targets = block->targets;
    const auto M = static_cast<std::uint64_t>(job->model->hmm.M);
    // Ranges of about equal work; the last is not left as a crumb.
    const std::uint64_t cells = targets.residue_count() * M;
    const std::uint64_t parts = std::max<std::uint64_t>(1, (cells + task_cells_ / 2) / task_cells_);
    const std::uint64_t share = targets.residue_count() / parts + 1;
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    std::size_t begin = 0;
    std::uint64_t residues = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      residues += static_cast<std::uint64_t>(targets.length(i));
      if (residues >= share || i + 1 == targets.size()) {
        ranges.emplace_back(begin, i + 1);
        begin = i + 1;
        residues = 0;
      }
    }
    job->pending += static_cast<std::int64_t>(ranges.size());
    job->filters_pending += static_cast<std::int64_t>(ranges.size());
    queued_filters_ += ranges.size();
    for (const auto& [from, to] : ranges) {
      submit_task(TaskClass::kFilter, static_cast<double>(job->index),
                  [this, job, block, from = from, to = to] { filter(job, block, from, to); });
    }
  }

  void filter(const JobPtr& job, const BlockPtr& block, std::size_t begin, std::size_t end) {
    if (--queued_filters_ < low_water_ && !stopped()) start_models();
    if (!stopped()) {
      const double begun = now_seconds();
      FilterOutput& output = cleared_output();
      const Status status = job->filters->run(block->targets, begin, end, output);
      if (!status) return abort_run(status.error());
      keep_survivors(*job, block, output);
      trace("filters", begun);
    }
    filters_done(job);
    release(job);
  }

  FilterOutput& cleared_output() {
    FilterOutput& output = locals_.local().filtered;
    output.survivors.clear();
    output.counters = {};
    output.times = {};
    return output;
  }

  // Of a target that passed the filters. Envelopes and traces take twice as long a cell as the
  // Forward filter and the parser, all that most targets have.
  static std::uint64_t cells_left(std::uint64_t L, std::uint64_t M, const ParsedTarget* parsed) {
    return parsed == nullptr ? L * M : L * M / 16 + 2 * parsed->residues_left() * M;
  }

  void keep_survivors(ModelJob& job, const BlockPtr& block, const FilterOutput& output) {
    locals_.local().times += output.times;
    const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
    progress_.cells += output.counters.residues * M;
    progress_.filter_microseconds += microseconds(output.times.total());
    std::uint64_t found = 0, found_left = 0;
    const std::lock_guard lock(job.mutex);
    for (const Survivor& survivor : output.survivors) {
      const auto L = static_cast<std::uint64_t>(block->targets.length(survivor.index));
      const std::uint64_t left = cells_left(L, M, survivor.parsed.get());
      job.waiting.push_back(
          {block, survivor.index, survivor.filter_nats, L * M, left, survivor.parsed});
      found += L * M;
      found_left += left;
    }
    progress_.scoring_cells_found += found;
    cells_left_ += found_left;
    job.counters += output.counters;
    job.cpu_seconds += output.times.total();
  }

  // ---- beside a device -------------------------------------------------------------------------

  // A number no other block of this process has: a device may remember blocks that are gone.
  static std::uint64_t block_id(const Block& block) { return block.id; }

  // A thread looks at one pair of model and block: unless the device has claimed it or will.
  void submit_unit(const JobPtr& job, std::uint64_t id) {
    submit_task(TaskClass::kFilter, static_cast<double>(job->index), [this, job, id] {
      if (stopped() || device_->serves(job->index, id)) return;
      filter_claimed(job, take_unit(*job, id));
    });
  }

  static BlockPtr take_unit(ModelJob& job, std::uint64_t id) {
    const std::lock_guard lock(job.mutex);
    const auto unit = std::ranges::find(job.unclaimed, id, &ModelJob::Unit::id);
    if (unit == job.unclaimed.end()) return nullptr;
    BlockPtr block = std::move(unit->block);
    job.unclaimed.erase(unit);
    return block;
  }

  // The CPU's way for one claimed block. While the device may still come, in one piece, so that
  // no more is taken than is worked on.
  void filter_claimed(const JobPtr& job, const BlockPtr& block) {
    if (block == nullptr) return;
    if (device_stopped_) {
      submit_ranges(job, block);
    } else {
      ++job->pending;
      ++job->filters_pending;
      ++queued_filters_;
      filter(job, block, 0, block->targets.size());
    }
    end_filter(job);
  }

  void end_filter(const JobPtr& job) {
    filters_done(job);
    release(job);
  }

  JobPtr device_job(std::uint64_t model) {
    const std::lock_guard lock(mutex_);
    const auto found = device_jobs_.find(model);
    return found == device_jobs_.end() ? nullptr : found->second;
  }

  std::vector<bool> claim(std::uint64_t model, std::span<const std::uint64_t> blocks) override {
    std::vector<bool> claimed(blocks.size(), false);
    const JobPtr job = stopped() ? nullptr : device_job(model);
    if (job == nullptr) return claimed;
    guarded([&] {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        BlockPtr block = take_unit(*job, blocks[i]);
        if (block == nullptr) continue;
        const std::lock_guard lock(mutex_);
        device_claims_.insert_or_assign({model, blocks[i]}, std::pair{job, std::move(block)});
        claimed[i] = true;
      }
    });
    return claimed;
  }

  std::pair<JobPtr, BlockPtr> end_claim(std::uint64_t model, std::uint64_t block) {
    const std::lock_guard lock(mutex_);
    auto node = device_claims_.extract({model, block});
    return std::move(node.mapped());
  }

  // A claim of which a part is done ahead: one more task that may find survivors.
  std::pair<JobPtr, BlockPtr> hold_claim(std::uint64_t model, std::uint64_t block) {
    const std::lock_guard lock(mutex_);
    auto claim = device_claims_.at({model, block});
    hold_job(*claim.first);
    return claim;
  }

  // A block a device has claimed and done.
  struct DeviceUnit {
    BlockPtr block;
    gpu::FilteredBlock filtered;
    std::uint64_t cells;  // left of what passed
  };

  void deliver(std::uint64_t model, std::span<const std::uint64_t> blocks,
               std::vector<gpu::FilteredBlock> results) override {
    submit_delivered(model, blocks, std::move(results), false);
  }

  bool deliver_early(std::uint64_t model, std::span<const std::uint64_t> blocks,
                     std::vector<gpu::FilteredBlock> results) override {
    // Whether a target was told can only be checked where all that were are told together.
    if (options_.verify > 0) return false;
    submit_delivered(model, blocks, std::move(results), true);
    return true;
  }

  static std::uint64_t passed_cells(const ModelJob& job, const TargetBlock& targets,
                                    const gpu::FilteredBlock& filtered) {
    const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
    std::uint64_t cells = 0;
    for (std::size_t i = 0; i < filtered.passed.size(); ++i) {
      cells += cells_left(static_cast<std::uint64_t>(targets.length(filtered.passed[i])), M,
                          filtered.parsed.empty() ? nullptr : filtered.parsed[i].get());
    }
    return cells;
  }

  void submit_delivered(std::uint64_t model, std::span<const std::uint64_t> blocks,
                        std::vector<gpu::FilteredBlock> results, bool early) {
    // Enough for a task, few enough to balance.
    constexpr std::size_t kTargets = 256;
    guarded([&] {
      std::vector<DeviceUnit> units;
      std::size_t targets = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        auto [job, block] = early ? hold_claim(model, blocks[i]) : end_claim(model, blocks[i]);
        targets += results[i].open.size() + results[i].passed.size();
        const std::uint64_t cells = passed_cells(*job, block->targets, results[i]);
        cells_left_ += cells;
        units.push_back({std::move(block), std::move(results[i]), cells});
        if (targets < kTargets && i + 1 < blocks.size()) continue;
        ++queued_filters_;
        submit_task(TaskClass::kFilter, static_cast<double>(model),
                    [this, job = std::move(job), units = std::exchange(units, {}), early] {
                      filter_behind_device(job, units, early);
                    });
        targets = 0;
      }
    });
  }

  void give_back(std::uint64_t model, std::span<const std::uint64_t> blocks) override {
    for (const std::uint64_t id : blocks) {
      guarded([&] {
        auto [job, block] = end_claim(model, id);
        submit_task(TaskClass::kFilter, static_cast<double>(model),
                    [this, job = std::move(job), block = std::move(block)] {
                      if (!stopped()) submit_ranges(job, block);
                      end_filter(job);
                    });
      });
    }
  }

  void decline(std::uint64_t model) override {
    const JobPtr job = device_job(model);
    if (job == nullptr) return;
    std::vector<std::uint64_t> ids;
    {
      const std::lock_guard lock(job->mutex);
      for (const ModelJob::Unit& unit : job->unclaimed) ids.push_back(unit.id);
    }
    for (const std::uint64_t id : ids) submit_unit(job, id);
  }

  void stopped(const Error& reason, bool demanded) override {
    if (demanded) return abort_run(reason);
    device_stopped_ = true;
    std::vector<std::uint64_t> models;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [model, job] : device_jobs_) models.push_back(model);
    }
    for (const std::uint64_t model : models) decline(model);
  }

  bool hungry() const override {
    // A few tasks ahead: what threads have not begun when the device is through is done too late.
    // Much may be behind a task that has only just been submitted.
    constexpr double kAheadSeconds = 0.025;
    return pool_.waiting() < static_cast<std::size_t>(pool_.threads() + 3) / 4 &&
           seconds_left() < kAheadSeconds;
  }

  double seconds_left() const override {
    const std::uint64_t done = cells_done_;
    const double seconds =
        done > 0 ? 1e-6 * static_cast<double>(microseconds_done_) / static_cast<double>(done)
                 : kFirstCellSeconds;
    return seconds * static_cast<double>(cells_left_) / pool_.threads();
  }

  // `early`: the rest of these blocks comes later.
  void filter_behind_device(const JobPtr& job, const std::vector<DeviceUnit>& units, bool early) {
    --queued_filters_;
    const double begun = now_seconds();
    for (const DeviceUnit& unit : units) {
      if (stopped()) break;
      const TargetBlock& targets = unit.block->targets;
      if (options_.verify > 0 && !verified(*job, targets, unit.filtered)) return;
      FilterOutput& output = cleared_output();
      const Status status = job->filters->run_survivors(targets, unit.filtered, output);
      if (!status) return abort_run(status.error());
      if (!early) {
        output.counters.targets += targets.size();
        output.counters.residues += targets.residue_count();
      }
      keep_survivors(*job, unit.block, output);
      cells_left_ -= unit.cells;
    }
    trace("filters behind device", begun);
    // What comes early is what would take longest: the rest should find it done.
    if (early && !stopped()) submit_waiting(job);
    for (std::size_t i = 0; i < units.size(); ++i) end_filter(job);
  }

  // Scores some targets again; ends the run where device and CPU differ.
  bool verified(ModelJob& job, const TargetBlock& targets, const gpu::FilteredBlock& filtered) {
    if (targets.size() == 0) return true;
    std::minstd_rand random(
        static_cast<std::uint32_t>(job.index * 7919 + targets.first_index() + 1));
    std::size_t checks = static_cast<std::size_t>(options_.verify);
    if (job.blocks_offered > 1) checks = (checks + job.blocks_offered - 1) / job.blocks_offered;
    const std::size_t told = filtered.open.size() + filtered.passed.size();
    for (std::size_t n = 0; n < checks; ++n) {
      // Every other check looks at a target the device told of: they are few.
      std::size_t index = random() % targets.size();
      if (n % 2 == 1 && told > 0) {
        const std::size_t pick = random() % told;
        index = pick < filtered.open.size() ? filtered.open[pick].index
                                            : filtered.passed[pick - filtered.open.size()];
      }
      const auto open =
          std::ranges::lower_bound(filtered.open, index, {}, &gpu::MsvSurvivor::index);
      const bool is_open = open != filtered.open.end() && open->index == index;
      const bool passed = std::ranges::binary_search(filtered.passed, index);
      const bool agrees = is_open ? job.filters->agrees(targets, *open)
                                  : passed == passes_filters(job, targets, index, passed);
      if (agrees) {
        ++verified_;
        continue;
      }
      abort_run({ErrorCode::kInternal,
                 "GPU and CPU disagree on target " + std::string(targets[index].name),
                 "model " + job.model->hmm.name, "use --device cpu and report this"});
      return false;
    }
    return true;
  }

  // Scores again what a device has gone on with, as far as --verify asks; ends the run where the
  // CPU alone comes to another result.
  bool verified_scores(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) {
    auto checks = static_cast<std::size_t>(options_.verify);
    domain::Workspace workspace;
    for (std::size_t n = 0; n < local.parsed.size() && checks > 0; ++n) {
      if (local.parsed[n] == nullptr) continue;
      --checks;
      float nats = 0;
      std::optional<domain::TargetScore> score;
      domain::score_targets_batch(
          job.forward(), {&local.views[n], 1}, [&](std::size_t, float v) { return passes(n, v); },
          alone_options_, workspace, {&nats, 1}, {&score, 1},
          [&](std::size_t, const domain::TargetScore& s) { return wanted(n, s); });
      const bool same_nats =
          nats == local.forward_nats[n] || (std::isnan(nats) && std::isnan(local.forward_nats[n]));
      if (same_nats && score == local.scores[n]) {
        ++verified_;
        continue;
      }
      abort_run(
          {ErrorCode::kInternal,
           "GPU and CPU disagree on the domains of target " + std::string(local.views[n].name),
           "model " + job.model->hmm.name, "use --device cpu and report this"});
      return false;
    }
    return true;
  }

  // All filters on the CPU, but Forward only if asked for: a device may leave it to the CPU.
  bool passes_filters(ModelJob& job, const TargetBlock& targets, std::size_t index,
                      bool without_forward) {
    FilterOutput output;
    if (!job.filters->run(targets, index, index + 1, output)) return false;
    if (output.survivors.empty()) return false;
    if (without_forward) return true;
    const std::optional<float> nats =
        domain::forward_filter(job.forward(), targets[index].residues, locals_.local().workspace);
    return nats && passes_forward(job, *nats, output.survivors.front().filter_nats);
  }

  bool passes_forward(const ModelJob& job, float nats, float filter_nats) const {
    const Calibration& calibration = job.model->hmm.calibration;
    const float bits = nats_to_bits(nats - filter_nats);
    return !(exponential_survival(bits, calibration.forward_tau, calibration.forward_lambda) >
             options_.filters.F3);
  }

  void trace(const char* name, double begun) const {
    if (options_.trace != nullptr) options_.trace->add("cpu", name, begun, now_seconds());
  }

  // The end of a filter task, or of the input.
  void filters_done(const JobPtr& job) {
    const bool last = --job->filters_pending == 0;
    if (stopped()) return;
    // Survivors wait until they fill batches, but not where they hold blocks that should go,
    // and not while threads have nothing else to do.
    const bool idle = queued_filters_ < static_cast<std::uint64_t>(pool_.threads());
    submit_waiting(job, last ? 1 : idle ? kSmallestBatch : 2 * kLargestBatch);
  }

  // Scores the waiting survivors of a model if there are `enough`.
  void submit_waiting(const JobPtr& job, std::size_t enough = 1) {
    std::vector<WaitingTarget> targets;
    {
      const std::lock_guard lock(job->mutex);
      if (job->waiting.size() < (releasing_blocks_ ? 1 : enough)) return;
      targets.swap(job->waiting);
    }
    submit_scoring(job, std::move(targets));
  }

  // Keeps a job from being finished until end_of_input().
  static void hold_job(ModelJob& job) {
    ++job.pending;
    ++job.filters_pending;
  }

  void end_of_input(const JobPtr& job) {
    filters_done(job);
    release(job);
  }

  void submit_scoring(const JobPtr& job, std::vector<WaitingTarget> targets) {
    if (targets.empty()) return;
    // Equal sizes side by side; ties in input order only for the sake of repeatable timing.
    std::sort(targets.begin(), targets.end(), [](const WaitingTarget& a, const WaitingTarget& b) {
      return a.cells_left != b.cells_left ? a.cells_left > b.cells_left : a.index < b.index;
    });
    const auto submit = [&](std::size_t from, std::size_t to, TaskClass task_class, double rank) {
      ++job->pending;
      submit_task(task_class, rank,
                  [this, job,
                   batch = std::vector<WaitingTarget>(
                       targets.begin() + static_cast<std::ptrdiff_t>(from),
                       targets.begin() + static_cast<std::ptrdiff_t>(to))] { score(job, batch); });
    };
    std::size_t at = 0;
    for (; at < targets.size() && targets[at].cells_left > kLargeTargetCells; ++at)
      submit(at, at + 1, TaskClass::kLargeDomain, -static_cast<double>(targets[at].cells_left));
    const std::size_t share = (targets.size() - at) / static_cast<std::size_t>(pool_.threads()) + 1;
    const std::size_t batch = std::clamp(share, kSmallestBatch, kLargestBatch);
    // A device leaves the last targets to all threads at once: none should have much of them.
    const std::uint64_t most = device_ == nullptr ? 2 * kLargeTargetCells
                               : hungry()         ? kLargeTargetCells / 4
                                                  : kLargeTargetCells / 2;
    while (at < targets.size()) {
      std::size_t end = at;
      std::uint64_t cells = 0;
      while (end < targets.size() && end - at < batch && cells < most)
        cells += targets[end++].cells_left;
      submit(at, end, TaskClass::kDomain, static_cast<double>(job->index));
      at = end;
    }
  }

  // Forward and everything behind it for a batch of survivors.
  void score(const JobPtr& job, const std::vector<WaitingTarget>& batch) {
    if (!stopped()) {
      ThreadState& local = locals_.local();
      const double begun = now_seconds(), used = thread_seconds();
      local.views.clear();
      local.parsed.clear();
      std::uint64_t cells = 0, left = 0;
      for (const WaitingTarget& target : batch) {
        local.views.push_back(target.block->targets[target.index]);
        local.parsed.push_back(target.parsed.get());
        cells += target.cells;
        left += target.cells_left;
        if (target.parsed == nullptr) local.forward_cells += target.cells;
      }
      local.forward_nats.assign(batch.size(), 0.0f);
      local.scores.assign(batch.size(), std::nullopt);
      const auto index_of = [&](std::size_t n) {
        return batch[n].block->targets.first_index() + batch[n].index;
      };
      const auto passes = [&](std::size_t n, float nats) {
        return passes_forward(*job, nats, batch[n].filter_nats);
      };
      const auto wanted = [&](std::size_t n, const domain::TargetScore& score) {
        return is_candidate(job->thresholds, score, index_of(n));
      };
      const auto run = [&](const domain::DomainOptions& options, domain::Workspace& workspace) {
        domain::score_targets_batch(job->forward(), local.views, passes, options, workspace,
                                    local.forward_nats, local.scores, wanted, local.parsed);
      };
      try {
        run(shared_options_, local.workspace);
      } catch (const std::exception& error) {
        // A thread has its share of the memory. What needs more is done alone, so that several
        // such targets do not meet; the matrices are given back afterwards.
        if (!is_memory_error(error)) throw;
        local.workspace.release_memory();
        const std::lock_guard alone(alone_mutex_);
        ++statistics_.scored_alone;
        local.forward_nats.assign(batch.size(), 0.0f);
        local.scores.assign(batch.size(), std::nullopt);
        domain::Workspace workspace;
        try {
          run(alone_options_, workspace);
        } catch (const domain::MatrixTooLarge& too_large) {
          return abort_run({ErrorCode::kResources,
                            too_large.what(),
                            {},
                            "leave out the target, or search it on a machine with more memory"});
        }
        local.alone_times += workspace.times();
      }
      if (options_.verify > 0 && !verified_scores(*job, local, passes, wanted)) return;
      std::vector<Hit> hits;
      std::uint64_t passed = 0;
      for (std::size_t n = 0; n < batch.size(); ++n) {
        // No Forward score: every path is impossible, as for a target of nothing but '*'.
        const float nats = local.forward_nats[n];
        passed += !std::isnan(nats) && passes(n, nats);
        if (!local.scores[n] || !wanted(n, *local.scores[n])) continue;
        const TargetView& target = local.views[n];
        Hit& hit = hits.emplace_back();
        hit.name = target.name;
        hit.accession = target.accession;
        hit.description = target.description;
        hit.index = index_of(n);
        hit.length = target.length();
        hit.score = *std::move(local.scores[n]);
        if (!options_.keep_alignments) {
          for (domain::Domain& domain : hit.score.domains) domain.alignment = {};
        }
      }
      trace("scoring", begun);
      const double seconds = thread_seconds() - used;
      local.scoring_seconds += seconds;
      progress_.scoring_cells += cells;
      progress_.scoring_microseconds += microseconds(seconds);
      cells_left_ -= left;
      cells_done_ += left;
      microseconds_done_ += microseconds(seconds);
      const std::lock_guard lock(job->mutex);
      job->counters.forward += passed;
      job->cpu_seconds += seconds;
      std::move(hits.begin(), hits.end(), std::back_inserter(job->hits));
    }
    release(job);
  }

  // ---- results -------------------------------------------------------------------------------

  void release(const JobPtr& job) {
    if (--job->pending == 0 && !stopped()) finish(*job);
  }

  // A model with all its hits, whose text is being made.
  struct Finished {
    ModelResult result;
    std::atomic<std::size_t> parts_left{0};
  };
  using FinishedPtr = std::shared_ptr<Finished>;

  void finish(ModelJob& job) {
    const auto finished = std::make_shared<Finished>();
    ModelResult& result = finished->result;
    result.index = job.index;
    const Hmm& hmm = job.model->hmm;
    result.model = {hmm.name, hmm.accession, hmm.description, hmm.M, hmm.consensus};
    result.hits = finish_hits(job.thresholds, std::move(job.hits), job.counters);
    result.seconds = now_seconds() - job.begun;
    result.cpu_seconds = job.cpu_seconds;
    result.alignments = options_.keep_alignments;
    if (device_ != nullptr) device_->remove_model(job.index);
    {
      const std::lock_guard lock(mutex_);
      device_jobs_.erase(job.index);
      active_bytes_ -= job.bytes;
    }
    job.forward_tables.reset();
    job.filters.reset();
    job.model.reset();
    result.prepared = sink_.prepare(result);
    const std::size_t parts = result.prepared == nullptr ? 0 : result.prepared->parts();
    finished->parts_left = std::max<std::size_t>(parts, 1);
    // The text of a family of thousands takes longer than the last tasks of the search.
    for (std::size_t part = 1; part < parts; ++part)
      submit_task(TaskClass::kControl, 0, [this, finished, part] { make_part(finished, part); });
    make_part(finished, 0);
  }

  void make_part(const FinishedPtr& finished, std::size_t part) {
    if (stopped()) return;
    const double begun = now_seconds(), used = thread_seconds();
    ModelResult& result = finished->result;
    if (result.prepared != nullptr) result.prepared->make(part);
    locals_.local().report_seconds += thread_seconds() - used;
    trace("report", begun);
    if (--finished->parts_left > 0) return;
    std::size_t bytes = sizeof result;
    for (const Hit& hit : result.hits.hits) bytes += hit_bytes(hit);
    if (result.prepared != nullptr) bytes += result.prepared->bytes();
    {
      const std::lock_guard lock(mutex_);
      --active_;
      undelivered_bytes_ += bytes;
      done_.emplace(result.index, std::make_pair(std::move(result), bytes));
    }
    after_model_change();
    next_pass();
  }

  // Hands finished results to the sink as far as they are complete in order.
  void deliver() {
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
      if (found == done_.end()) break;
      auto [result, bytes] = std::move(found->second);
      done_.erase(found);
      lock.unlock();
      const double begun = now_seconds(), used = thread_seconds();
      statistics_.counters += result.hits.counters;
      statistics_.hits_reported += result.hits.reported;
      for (const Hit& hit : result.hits.hits)
        statistics_.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
      const Status status = sink_.receive(result);
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

  void collect_statistics() {
    statistics_.backend = backend_.name();
    if (device_ != nullptr && device_->statistics().blocks_done > 0)
      statistics_.backend = device_->name() + "+" + statistics_.backend;
    statistics_.threads = pool_.threads();
    statistics_.models = delivered_;
    statistics_.verified = verified_;
    for (const ThreadState& local : locals_) {
      statistics_.filters += local.times;
      statistics_.scoring_seconds += local.scoring_seconds;
      statistics_.forward_cells += local.forward_cells;
      statistics_.setup_seconds += local.setup_seconds;
      statistics_.report_seconds += local.report_seconds;
      statistics_.read_seconds += local.decode_seconds;
      statistics_.domain += local.workspace.times();
      statistics_.domain += local.alone_times;
    }
  }

  const SearchOptions& options_;
  const ModelSource& models_;
  TargetSource* input_;  // the caller's, later perhaps the spool
  FilterBackend& backend_;
  ResultSink& sink_;
  SearchProgress& progress_;
  std::uint64_t target_budget_ = 0, model_budget_ = 0, result_budget_ = 0, block_residues_ = 0;
  std::uint64_t device_host_bytes_ = 0;
  domain::DomainOptions shared_options_, alone_options_;  // a thread's share; one thread alone
  std::mutex alone_mutex_;
  std::uint64_t low_water_ = 0, max_active_ = 0, task_cells_ = 0;
  gpu::GpuFilters* device_ = nullptr;  // null: none
  std::atomic<bool> device_stopped_{false};

  std::atomic<bool> stopped_{false};
  std::atomic<bool> releasing_blocks_{false};  // streaming, and the batch of models is complete
  std::atomic<std::uint64_t> queued_filters_{0};
  std::atomic<std::uint64_t> in_flight_bytes_{0};
  std::atomic<std::uint64_t> verified_{0};
  // Of targets that passed the filters: what is to be scored, and what has been by all threads.
  std::atomic<std::uint64_t> cells_left_{0}, cells_done_{0}, microseconds_done_{0};
  std::atomic<bool> decoding_ahead_{false};

  std::mutex models_mutex_;  // model input, in order
  std::size_t next_index_ = 0;
  bool models_at_end_ = false;
  std::optional<Hmm> peeked_;
  std::optional<Error> peek_error_;

  std::mutex mutex_;  // everything below up to the pool
  bool models_ended_ = false;
  std::size_t preparing_ = 0, active_ = 0;
  std::optional<std::pair<std::size_t, Error>> model_error_;
  std::optional<Error> error_;
  Error out_of_memory_{
      ErrorCode::kResources, "out of memory", {}, "use fewer threads (--cpu) or split the input"};
  std::vector<BlockPtr> blocks_;   // kept for models to come; empty when streaming
  std::vector<JobPtr> open_jobs_;  // jobs that wait for more blocks
  bool reading_ = false, input_ended_ = false, streaming_ = false, filling_ = false;
  std::size_t active_bytes_ = 0, model_estimate_ = kFirstModelEstimate;  // of one model
  std::map<std::size_t, std::pair<ModelResult, std::size_t>> done_;
  std::map<std::uint64_t, JobPtr> device_jobs_;  // in flight: nobody else may hold them
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::pair<JobPtr, BlockPtr>> device_claims_;
  std::size_t undelivered_bytes_ = 0, delivered_ = 0;
  bool delivering_ = false;

  std::unique_ptr<BlockSpool> spool_;
  SearchStatistics statistics_;
  tbb::enumerable_thread_specific<ThreadState> locals_;
  TaskPool pool_;  // last: its tasks use all of the above
};

Block::~Block() { run.block_released(bytes); }

}  // namespace

Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                TargetSource& targets, FilterBackend& backend, ResultSink& sink,
                                SearchProgress* progress) {
  SearchProgress unused;
  Run run(options, models, targets, backend, sink, progress != nullptr ? *progress : unused);
  return run.run();
}

}  // namespace hmmjit
