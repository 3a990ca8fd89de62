// One search while it runs: models and target blocks in flight, and the tasks that take them from
// step to step. One file a step:
//   search.cpp          start, end, errors, results in order
//   search_models.cpp   models read and set up, as many as memory and threads want
//   search_targets.cpp  targets read in blocks, kept or streamed
//   search_filters.cpp  a model over a block, and what passes scored in batches
//   search_device.cpp   the same beside a device, which claims blocks and delivers what passed
//   search_verification.cpp  what a device computed is checked; what was wrong is searched again
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/per_thread.hpp"
#include "core/threads.hpp"
#include "search/search.hpp"
#include "search/task_pool.hpp"
#include "search/verification.hpp"
#include "work/work_board.hpp"

namespace hmmjit::search_run {

// Bytes of a model of some 250 nodes: what a model is taken for before any has been seen.
constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

class Run;

// A target block in flight, handed on as TargetsPtr. Whoever holds the last reference gives its
// bytes back to the run.
struct Block {
  Block(Run& owner, TargetBlock&& content)
      : run(owner), targets(std::move(content)), bytes(targets.bytes()) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Run& run;
  TargetBlock targets;
  std::size_t bytes;
  // A number no other block of this process has: a device may remember blocks that are gone.
  const BlockId id = next_id();

 private:
  static BlockId next_id() {
    static std::atomic<BlockId> next{1};
    return next++;
  }
};
using BlockPtr = std::shared_ptr<Block>;
inline TargetsPtr targets_of(const BlockPtr& block) { return {block, &block->targets}; }

// A target that passed the filters, waiting to be scored.
struct WaitingTarget {
  TargetsPtr targets;
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
  std::optional<QueryNames> sequence;  // the model was built from
  std::unique_ptr<PreparedFilters> filters;
  std::once_flag forward_made;
  std::optional<domain::ForwardTables> forward_tables;  // made when first needed
  ModelThresholds thresholds;
  std::size_t bytes = 0;
  std::atomic<std::int64_t> pending{1}, filters_pending{1};
  // Of a model that is searched again: not beside a device. `expected`: its result has been
  // delivered already, and has this digest.
  bool again = false;
  std::optional<std::uint64_t> expected;
  // A kernel of its chains is wrong: what is left is not done, and the model is searched again.
  std::atomic<bool> spoiled{false};

  std::mutex mutex;                   // for what follows
  std::set<gpu::UsedKernel> kernels;  // of its chains
  bool finished = false;              // too late to be spoiled: finish() has what it found
  std::vector<WaitingTarget> waiting;
  std::uint64_t blocks_offered = 0;  // to devices
  double cpu_seconds = 0;
  std::vector<Hit> hits;
  std::size_t hit_bytes = 0;  // of these
  FilterCounters counters;

  std::mutex storing;  // for what follows: hits there was no room for
  std::shared_ptr<StoredHits> stored;

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

class Run : private gpu::Client {
 public:
  Run(const SearchOptions& options, const ModelSource& models, TargetSource& targets,
      FilterBackend& backend, ResultSink& sink, SearchProgress& progress);
  Result<SearchStatistics> run();
  void block_released(BlockId block, std::size_t bytes) noexcept;

 private:
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
  void trace(const char* name, double begun) const {
    if (options_.trace != nullptr) options_.trace->add("cpu", name, begun, now_seconds());
  }

  // What it takes to search a model again: of a finished one, with the kernels its result is made
  // with, and the digest of that. Nothing without kernels.
  struct Retained {
    std::size_t index = 0;
    std::shared_ptr<const Query> query;
    std::set<gpu::UsedKernel> kernels;
    std::uint64_t digest = 0;
    std::size_t bytes = 0;
  };
  struct Again {
    std::size_t index;
    std::shared_ptr<const Query> query;
    std::optional<std::uint64_t> expected;
  };

  // ---- search.cpp ----------------------------------------------------------------------------

  void start();
  void warn_of_threads();
  // Allocates nothing: the error is ready.
  void abort_out_of_memory() noexcept;
  // An error that ends the whole search at once.
  void abort_run(Error error);
  // Beside a device the pool is held open; lets go once nothing can come any more.
  void release_pool_if_done();
  // An error of one model: the models before it are finished and delivered first.
  void fail_model(std::size_t index, Error error);
  void release(const JobPtr& job);
  // A model with all its hits, whose text is being made.
  struct Finished {
    ModelResult result;
    std::size_t expected_bytes = 0;  // with its text
    std::atomic<std::size_t> parts_left{0};
    Retained retained;
  };
  using FinishedPtr = std::shared_ptr<Finished>;
  void finish(ModelJob& job);
  // Adds to the hits of a job; where all jobs together have too many, those of the job are stored.
  Status keep_hits(ModelJob& job, std::vector<Hit>& hits);
  void let_go_of_hits(ModelJob& job);
  Status store_hits(ModelJob& job, std::vector<Hit>& hits);
  // Sorted and judged; stored where a result of that size has no room in memory.
  Result<HitList> finished_hits(ModelJob& job, std::vector<Hit>& hits, Finished& finished);
  void make_part(const FinishedPtr& finished, std::size_t part);
  // Hands finished results to the sink as far as they are complete in order.
  void deliver();
  void collect_statistics();

  // ---- search_models.cpp ---------------------------------------------------------------------

  // With mutex_ held.
  bool may_start_model() const;
  void start_models();
  // The next model and its index, nullopt at the end.
  Result<std::optional<Query>> next_model(std::size_t& index);
  // True when a further model exists; an error counts, the set-up will meet it again.
  bool more_models();
  void set_up_model();
  void set_up_again(const Again& again);
  Result<JobPtr> make_job(std::size_t index, Query query, double begun);
  static std::size_t model_bytes(const ModelJob& job);
  void activate(const JobPtr& job);
  // Something about the set of models changed: start more, or go on with the targets.
  void after_model_change();

  // ---- search_targets.cpp --------------------------------------------------------------------

  // Starts the reading task unless it runs, or waits for memory, or there is nothing to read.
  void resume_reading();
  // Decompressing ahead of the reading task is work like any other: a task, so that no more
  // threads are busy than was asked for. A single thread decompresses as it reads.
  void decode_ahead();
  void read_targets();
  // False when reading must pause: `reading_` is then cleared.
  bool add_block(BlockPtr block);
  void batch_is_filled();
  void end_of_targets();
  // Streaming: when the batch is through, read the input again for the next one.
  void next_pass();

  // ---- search_filters.cpp --------------------------------------------------------------------

  void submit_filters(const JobPtr& job, const BlockPtr& block);
  void submit_ranges(const JobPtr& job, const TargetsPtr& targets);
  void filter(const JobPtr& job, const TargetsPtr& targets, std::size_t begin, std::size_t end);
  FilterOutput& cleared_output();
  // Of a target that passed the filters. Envelopes and traces take twice as long a cell as the
  // Forward filter and the parser, all that most targets have.
  static std::uint64_t cells_left(std::uint64_t L, std::uint64_t M, const ParsedTarget* parsed);
  void keep_survivors(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output);
  // One more that may find survivors: the job is not finished before end_filter().
  static void hold_job(ModelJob& job);
  // The end of a filter task, of the input, or of a hold.
  void end_filter(const JobPtr& job);
  // Scores the waiting survivors of a model if there are `enough`.
  void submit_waiting(const JobPtr& job, std::size_t enough = 1);
  void submit_scoring(const JobPtr& job, std::vector<WaitingTarget> targets);
  // Forward and everything behind it for a batch of survivors.
  void score(const JobPtr& job, const std::vector<WaitingTarget>& batch);
  bool passes_forward(const ModelJob& job, float nats, float filter_nats) const;

  // ---- search_device.cpp ---------------------------------------------------------------------

  // A thread looks at one pair on the board: unless a device has claimed it or will.
  void submit_unit(const JobPtr& job, BlockId block);
  void take_unit(const JobPtr& job, BlockId block);
  // From the board: a device leaves the pair to the threads.
  void left_to_host(ModelId model, BlockId block) noexcept;
  JobPtr device_job(ModelId model);
  void deliver(ModelId model, std::vector<gpu::Delivery> pairs) override;
  bool deliver_early(ModelId model, std::vector<gpu::EarlyDelivery> pairs) override;
  void stopped(const Error& reason, bool demanded) override;
  gpu::HostLoad load() const override;
  static std::uint64_t passed_cells(const ModelJob& job, const TargetBlock& targets,
                                    const gpu::FilteredBlock& filtered);
  // What a device has found out about a block, of all it has done or of a part (`early`).
  struct DeviceUnit {
    TargetsPtr targets;
    gpu::FilteredBlock filtered;
    std::uint64_t cells = 0;  // left of what passed
  };
  void submit_delivered(const JobPtr& job, std::vector<DeviceUnit> delivered, bool early);
  // `early`: the rest of these blocks comes later.
  void filter_behind_device(const JobPtr& job, const std::vector<DeviceUnit>& units, bool early);

  // ---- search_verification.cpp ---------------------------------------------------------------

  gpu::SampleRequest sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks) override;
  // Notes what a block was computed with and checks what came with it.
  void check_block(const JobPtr& job, const TargetBlock& targets, const gpu::BlockSample& sample);
  std::optional<Difference> check_target(ModelJob& job, const TargetBlock& targets,
                                         const gpu::SampledTarget& target);
  // Scores again some of what a device has gone on with behind the filters.
  void check_scores(const JobPtr& job, ThreadState& local, const domain::PassesForward& passes,
                    const domain::WantedTarget& wanted);
  // One line, and nothing that comes from such a kernel is used.
  void act_on(const JobPtr& job, const Difference& difference);
  // Kernels that computed wrong scores: models that have used them are searched again.
  void distrust(const std::vector<gpu::UsedKernel>& kernels);
  // With mutex_ held.
  bool distrusted(const std::set<gpu::UsedKernel>& kernels) const;
  void spoil(const JobPtr& job);
  // With mutex_ held: whether results stay here, where they can still be made anew.
  bool holds_back() const;
  // With mutex_ held.
  void keep_delivered(Retained&& retained);
  // What the job searches with, while it still has its model.
  static std::shared_ptr<const Query> query_of(const ModelJob& job);
  static Result<Retained> retain(const ModelJob& job, std::set<gpu::UsedKernel> kernels,
                                 const ModelResult& result);
  // A model that was searched again after its result had been delivered: both must be the same.
  void confirm(const ModelJob& job, const ModelResult& result);
  // Of all that outputs show.
  static Result<std::uint64_t> digest_of(const ModelResult& result);

  const SearchOptions& options_;
  const ModelSource& models_;
  TargetSource* input_;  // the caller's, later perhaps the spool
  FilterBackend& backend_;
  ResultSink& sink_;
  SearchProgress& progress_;
  std::uint64_t target_budget_ = 0, model_budget_ = 0, result_budget_ = 0, block_residues_ = 0;
  std::atomic<std::uint64_t> held_hit_bytes_{0};  // of jobs that go on
  std::uint64_t device_host_bytes_ = 0;
  domain::DomainOptions shared_options_, alone_options_;  // a thread's share; one thread alone
  std::mutex alone_mutex_;
  std::uint64_t low_water_ = 0, max_active_ = 0, task_cells_ = 0;
  gpu::GpuFilters* device_ = nullptr;  // null: none

  std::atomic<bool> stopped_{false};
  std::atomic<bool> releasing_blocks_{false};  // streaming, and the batch of models is complete
  std::atomic<std::uint64_t> queued_filters_{0};
  std::atomic<std::uint64_t> in_flight_bytes_{0};
  Verification verification_;
  std::atomic<std::uint64_t> searched_again_{0};
  // Of targets that passed the filters: what is to be scored, and what has been by all threads.
  std::atomic<std::uint64_t> cells_left_{0}, cells_done_{0}, microseconds_done_{0};
  std::atomic<bool> decoding_ahead_{false};

  std::mutex models_mutex_;  // model input, in order
  std::size_t next_index_ = 0;
  bool models_at_end_ = false;
  std::optional<Query> peeked_;
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
  struct Done {
    ModelResult result;
    std::size_t bytes;
    Retained retained;
  };
  std::map<std::size_t, Done> done_;
  // Kernels known to be wrong; models to be searched again; results that have been delivered and
  // could still turn out to be concerned, as many as memory allows, and the kernels of the others.
  std::set<gpu::UsedKernel> distrusted_;
  std::deque<Again> again_;
  std::deque<Retained> delivered_models_;
  std::size_t delivered_model_bytes_ = 0;
  std::set<gpu::UsedKernel> beyond_recall_;
  std::map<ModelId, JobPtr> device_jobs_;  // in flight: nobody else may hold them
  // Of results that are complete, and of those whose text is being made.
  std::size_t undelivered_bytes_ = 0, expected_bytes_ = 0, delivered_ = 0;
  bool delivering_ = false;

  std::unique_ptr<BlockSpool> spool_;
  SearchStatistics statistics_;
  PerThread<ThreadState> locals_;
  // Which pairs of those models are still to be done, beside a device.
  WorkBoard board_{[this](ModelId model, BlockId block) { left_to_host(model, block); }};
  TaskPool pool_;  // last: its tasks use all of the above
};

}  // namespace hmmjit::search_run
