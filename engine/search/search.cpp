// One search while it runs: the steps, each a type with a file of its own, and what leads from one
// to the next.
//   search_tasks        what all steps share; tasks, which the first error ends
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
#include "core/random_seed.hpp"
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
          gpu::GpuFilters* given_device)
      : threads(std::max(1, options.threads)),
        // With both limits at 1 nothing is turned away (--max): a device has nothing to do.
        device(options.filters.F1 < 1.0 ? given_device : nullptr),
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
      TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink, SearchProgress& progress);
  ~Run() { search_.tasks.discard(); }
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

  const Setting setting_;
  gpu::GpuFilters* const device_ = setting_.device;
  SearchContext search_;
  ModelInput input_;
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
         TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink, SearchProgress& progress)
    : setting_(options, available, targets.bytes_total(), device),
      search_(options, progress, device_ != nullptr),
      input_(models),
      targets_(search_, targets, setting_.block_residues, window_, device_, pairs_, filters_,
               scorer_, input_, *this),
      window_({.model_bytes = setting_.memory.models,
               .target_bytes = setting_.memory.targets,
               .threads = setting_.threads,
               .device = device_ != nullptr}),
      queue_(search_, sink, setting_.memory.results),
      hits_(options, sink.takes_stored_hits(), setting_.memory.results,
            (device_ == nullptr ? 1 : 8) * most_models(setting_.threads)),
      results_(search_, window_, hits_, queue_, sink, *this),
      verifier_(search_, setting_.alone),
      scorer_(search_, setting_.shared, setting_.alone, device_ != nullptr, verifier_, hits_,
              results_),
      filters_(search_, scorer_, verifier_, results_, *this),
      pairs_(search_, device_, filters_),
      client_(search_, pairs_, filters_, verifier_),
      models_(search_, input_, window_, queue_, pairs_, filters_, *this) {
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
    search_.tasks.run([this] { start(); });
  }
  if (auto error = search_.tasks.error()) {
    // Where memory ran out there was none for a remedy.
    if (error->code == ErrorCode::kResources && error->remedy.empty())
      error->remedy = "use fewer threads (--cpu) or split the input";
    return std::unexpected(*std::move(error));
  }
  if (!window_.complete() || !queue_.empty())
    return fail(ErrorCode::kInternal, "the search stopped before it was complete");
  SearchStatistics out = statistics();
  out.wall_seconds = now_seconds() - begun;
  return out;
}

void Run::start() {
  if (device_ != nullptr) {
    const FilterOptions& f = search_.options.filters;
    std::optional<std::uint32_t> trace_seed;
    if (search_.options.domain.reseed) trace_seed = search_.options.domain.seed;
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
    search_.tasks.submit(TaskClass::kControl, 0, [this] { targets_.begin_batch(); });
  if (queue_.deliver()) models_.start();
  targets_.resume();
  // Nothing can come from devices any more.
  if (search_.tasks.stopped() || window_.complete()) search_.tasks.release();
}

void Run::model_ended() {
  models_changed();
  targets_.next_pass();
}

SearchStatistics Run::statistics() {
  SearchStatistics out;
  out.backend = host_filters_name();
  if (device_ != nullptr && device_->statistics().blocks_done > 0)
    out.backend = device_->name() + "+" + out.backend;
  out.threads = search_.tasks.threads();
  out.scored_alone = scorer_.scored_alone();
  queue_.add_to(out);
  targets_.add_to(out);
  verifier_.add_to(out);
  search_.threads.for_each([&out](const ThreadState& local) {
    out.filters += local.times;
    out.scoring_seconds += local.scoring_seconds;
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

Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink,
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
  search_run::Run run(granted, grant.available, models, targets, device, sink,
                      progress != nullptr ? *progress : unused);
  return run.run();
}

}  // namespace hmmjit
