// One search while it runs: the steps, each a type with a file of its own, and what leads from one
// to the next.
//   search_tasks        tasks, which the first error ends
//   search_window       which models and blocks are in flight, and what may be begun
//   model_input, model_feed   models in order; set up
//   target_feed         targets in blocks, kept or streamed
//   pair_dispatcher, device_client   who does a pair; what a device delivers
//   filter_tasks        filters of a pair on the threads
//   scorer              what passed, in batches: Forward and domains
//   kept_hits, result_maker, result_queue   hits to results, in order to the sink
//   verifier            checks of what a device computed
#include "search/search.hpp"

#include <algorithm>

#include "core/memory.hpp"
#include "search/device_client.hpp"
#include "search/filter_tasks.hpp"
#include "search/kept_hits.hpp"
#include "search/memory_shares.hpp"
#include "search/model_feed.hpp"
#include "search/model_input.hpp"
#include "search/model_job.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/result_maker.hpp"
#include "search/result_queue.hpp"
#include "search/scorer.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"
#include "search/target_feed.hpp"
#include "search/verifier.hpp"

namespace hmmjit {
namespace search_run {
namespace {

// Each pair of a model and a block is a task or two, and an entry of the board, which takes tens of
// microseconds whoever does it: of an input of `bytes` (0: not known) there are some hundreds of
// blocks, as long as a block with a long model is done in a tenth of a second.
std::uint64_t block_residues_of(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20, kBlocks = 256;
  return std::clamp(bytes / kBlocks, kLeast, 4 * kLeast);
}

// Everything that follows from what a search is asked to do, before it begins.
struct Setting {
  Setting(const SearchOptions& options, std::uint64_t available, std::uint64_t target_bytes,
          FilterBackend& backend)
      : threads(std::max(1, options.threads)),
        // With both limits at 1 nothing is turned away (--max): a device has nothing to do.
        device(options.filters.F1 < 1.0 ? backend.device() : nullptr),
        memory(divide_memory(options, threads, available)),
        shared(options.domain),
        alone(options.domain) {
    if (device != nullptr) {
      // Copies in device layout on their way to it.
      device_host_bytes = memory.targets / 4;
      memory.targets -= device_host_bytes;
    }
    block_residues = std::clamp<std::uint64_t>(
        memory.targets / 8, 4096,
        options.block_residues > 0 ? options.block_residues : block_residues_of(target_bytes));
    shared.max_matrix_bytes = memory.matrix_shared;
    alone.max_matrix_bytes = memory.matrix_alone;
  }

  int threads;
  gpu::GpuFilters* device;  // null: none
  MemoryShares memory;
  std::uint64_t device_host_bytes = 0;
  std::size_t block_residues = 0;
  domain::DomainOptions shared, alone;  // a thread's share; one thread alone
};

class Run final : private SearchControl {
 public:
  Run(const SearchOptions& options, std::uint64_t available, const ModelSource& models,
      TargetSource& targets, FilterBackend& backend, ResultSink& sink, SearchProgress& progress);
  ~Run() { tasks_.discard(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  Result<SearchStatistics> run();

 private:
  void start();
  void start_models() override { models_.start(); }
  void models_changed() override;
  void model_ended() override;
  void leave_devices(const ModelJob& job) override { pairs_.remove_model(job); }
  SearchStatistics statistics();

  const SearchOptions& options_;
  FilterBackend& backend_;
  const Setting setting_;
  gpu::GpuFilters* const device_ = setting_.device;
  ThreadStates threads_;
  SearchTasks tasks_;
  ModelInput input_;
  ScoringLoad load_;
  TargetFeed targets_;  // before all that hold blocks: the end of a block is reported to it
  SearchWindow window_;
  ResultQueue queue_;
  KeptHits hits_;
  ResultMaker results_;
  Verifier verifier_;
  Scorer scorer_;
  FilterTasks filters_;
  PairDispatcher pairs_;
  DeviceClient client_;
  ModelFeed models_;
};

Run::Run(const SearchOptions& options, std::uint64_t available, const ModelSource& models,
         TargetSource& targets, FilterBackend& backend, ResultSink& sink, SearchProgress& progress)
    : options_(options),
      backend_(backend),
      setting_(options, available, targets.bytes_total(), backend),
      tasks_(options, device_ != nullptr),
      input_(models),
      targets_(targets, setting_.block_residues, tasks_, threads_, window_, device_, pairs_,
               filters_, scorer_, input_, *this, progress),
      window_({.model_bytes = setting_.memory.models,
               .target_bytes = setting_.memory.targets,
               .threads = setting_.threads,
               .device = device_ != nullptr}),
      queue_(tasks_, sink, progress, setting_.memory.results),
      hits_(options, sink.takes_stored_hits(), setting_.memory.results,
            (device_ == nullptr ? 1 : 8) * most_models(setting_.threads)),
      results_(options, tasks_, threads_, window_, hits_, queue_, sink, *this),
      verifier_(options, tasks_, threads_, setting_.alone, progress),
      scorer_(options, tasks_, threads_, setting_.shared, setting_.alone, device_ != nullptr,
              verifier_, hits_, load_, results_, progress),
      filters_(options, tasks_, threads_, scorer_, verifier_, load_, results_, *this),
      pairs_(tasks_, device_, filters_, progress),
      client_(tasks_, pairs_, filters_, verifier_, load_, progress),
      models_(options, backend, input_, tasks_, threads_, window_, queue_, pairs_, filters_, *this,
              progress) {
  // The rest of a bound can be one target. The least is what every bound has room for.
  targets.limit_targets(std::max<std::uint64_t>(setting_.memory.bound / 2, std::uint64_t{1} << 24));
}

Result<SearchStatistics> Run::run() {
  const double begun = now_seconds();
  struct Detach {
    gpu::GpuFilters* device;
    ~Detach() {
      if (device != nullptr) device->detach();
    }
  };
  {
    const Detach detach{device_};
    tasks_.run([this] { start(); });
  }
  if (const auto error = tasks_.error()) return std::unexpected(*error);
  if (!window_.complete() || !queue_.empty())
    return fail(ErrorCode::kInternal, "the search stopped before it was complete");
  SearchStatistics out = statistics();
  out.wall_seconds = now_seconds() - begun;
  return out;
}

void Run::start() {
  if (device_ != nullptr) {
    const FilterOptions& f = options_.filters;
    std::optional<std::uint32_t> trace_seed;
    if (options_.domain.reseed) trace_seed = options_.domain.seed;
    device_->attach(client_, pairs_.board(),
                    {.F1 = f.F1, .F2 = f.F2, .F3 = f.F3, .bias = f.bias, .trace_seed = trace_seed},
                    setting_.device_host_bytes);
  }
  models_.start();
  targets_.resume();
}

void Run::models_changed() {
  models_.start();
  if (window_.batch_filled(models_.demand()))
    tasks_.submit(TaskClass::kControl, 0, [this] { targets_.begin_batch(); });
  if (queue_.deliver()) models_.start();
  targets_.resume();
  // Nothing can come from devices any more.
  if (tasks_.stopped() || window_.complete()) tasks_.release();
}

void Run::model_ended() {
  models_changed();
  targets_.next_pass();
}

SearchStatistics Run::statistics() {
  SearchStatistics out;
  out.backend = backend_.name();
  if (device_ != nullptr && device_->statistics().blocks_done > 0)
    out.backend = device_->name() + "+" + out.backend;
  out.threads = tasks_.threads();
  out.scored_alone = scorer_.scored_alone();
  queue_.add_to(out);
  targets_.add_to(out);
  verifier_.add_to(out);
  threads_.for_each([&out](const ThreadState& local) {
    out.filters += local.times;
    out.scoring_seconds += local.scoring_seconds;
    out.forward_cells += local.forward_cells;
    out.setup_seconds += local.setup_seconds;
    out.report_seconds += local.report_seconds;
    out.read_seconds += local.decode_seconds;
    out.domain += local.workspace.times();
    out.domain += local.alone_times;
  });
  return out;
}

}  // namespace
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
  search_run::Run run(granted, grant.available, models, targets, backend, sink,
                      progress != nullptr ? *progress : unused);
  return run.run();
}

}  // namespace hmmjit
