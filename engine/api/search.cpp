// The search for host programs: the pipeline of engine/search, callbacks and cancellation.
#include "hmmjit/search.hpp"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "api/copy_members.hpp"
#include "api/handles.hpp"
#include "api/host_calls.hpp"
#include "api/inputs.hpp"
#include "api/results.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "hmmjit/nhmmer.hpp"
#include "report/nucleotide_run.hpp"
#include "report/run_statistics.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {

struct Cancellation::Impl {
  std::atomic<bool> cancelled{false};
};
Cancellation::Cancellation() : impl_(guarded([] { return std::make_shared<Impl>(); })) {}
void Cancellation::cancel() noexcept { impl_->cancelled = true; }
bool Cancellation::cancelled() const noexcept { return impl_->cancelled; }

void require(bool sensible, const char* option, const char* takes) {
  if (!sensible)
    throw Error(ErrorCode::kUsage, "an option makes no sense", option,
                std::string("it takes ") + takes);
}

void check_options(const SearchOptions& o) {
  for (const double F : {o.F1, o.F2, o.F3})
    require(F > 0, "F1, F2, F3", "a probability above 0; 1 and more turn the filter off");
  for (const Threshold& t : {o.report, o.report_domain, o.include, o.include_domain}) {
    require(t.e_value > 0, "a threshold's e_value", "a number above 0");
    require(!t.score || !std::isnan(*t.score), "a threshold's score", "a number");
  }
  for (const std::optional<double>& Z : {o.Z, o.domZ})
    require(!Z || (*Z > 0 && std::isfinite(*Z)), "Z, domZ", "a finite number above 0");
  constexpr std::uint64_t kLeastMemory = 64 << 10;  // a smaller number lacks its unit
  require(o.memory == 0 || o.memory >= kLeastMemory, "memory",
          "65,536 and more bytes, or 0 for half of the free memory");
  require(o.threads >= 0 && o.threads <= 1024, "threads", "0 to 1024");
  require(o.verify >= -1, "verify", "0 or more, or -1 for the default");
  require(!o.gpus.empty() && std::set(o.gpus.begin(), o.gpus.end()).size() == o.gpus.size() &&
              *std::min_element(o.gpus.begin(), o.gpus.end()) >= 0,
          "gpus", "different ordinals of devices");
}

namespace {

hmmjit::Threshold to_threshold(const Threshold& t) { return {t.e_value, t.score}; }

static_assert(
    static_cast<int>(ModelCutoffs::kGathering) ==
        static_cast<int>(hmmjit::ModelCutoffs::kGathering) &&
    static_cast<int>(ModelCutoffs::kNoise) == static_cast<int>(hmmjit::ModelCutoffs::kNoise) &&
    static_cast<int>(ModelCutoffs::kTrusted) == static_cast<int>(hmmjit::ModelCutoffs::kTrusted) &&
    static_cast<int>(ModelCutoffs::kTable) == static_cast<int>(hmmjit::ModelCutoffs::kTable));

std::shared_ptr<const hmmjit::CutoffTable> to_table(const CutoffTable& given) {
  // The score that every target and every domain reaches.
  const auto score = [](double s) { return std::isnan(s) ? -999.0f : static_cast<float>(s); };
  auto table = std::make_shared<hmmjit::CutoffTable>();
  for (const auto& [model, cutoff] : given)
    table->emplace(model, Cutoff{score(cutoff.sequence), score(cutoff.domain)});
  return table;
}

}  // namespace

hmmjit::SearchOptions to_options(const SearchOptions& o) {
  hmmjit::SearchOptions out;
  out.thresholds.target = to_threshold(o.report);
  out.thresholds.domain = to_threshold(o.report_domain);
  out.thresholds.include_target = to_threshold(o.include);
  out.thresholds.include_domain = to_threshold(o.include_domain);
  out.thresholds.cutoffs = static_cast<hmmjit::ModelCutoffs>(o.cutoffs);
  if (o.cutoffs == ModelCutoffs::kTable) out.thresholds.table = to_table(o.cutoff_table);
  if (o.missing_cutoffs == MissingCutoffs::kDefault)
    out.thresholds.missing = hmmjit::MissingCutoffs::kDefault;
  out.thresholds.Z = o.Z;
  out.thresholds.domZ = o.domZ;
  if (o.max_sensitivity) {
    out.filters = FilterOptions::max_sensitivity();
  } else {
    out.filters = {std::min(1.0, o.F1), std::min(1.0, o.F2), std::min(1.0, o.F3), o.bias_filter};
  }
  out.domain.null2 = o.null2;
  set_seed(out.domain, o.seed);
  out.keep_alignments = o.keep_alignments;
  if (o.verify >= 0) out.verify = o.verify;
  out.threads = o.threads > 0 ? o.threads : available_cores();
  out.memory = o.memory;
  return out;
}

namespace {

class Collector final : public ResultSink {
 public:
  Collector(const SearchCallbacks& callbacks, HostCalls& host, std::vector<ModelResult>& results)
      : callbacks_(callbacks), host_(host), results_(results) {}
  Status receive(const hmmjit::ModelResult& given) override {
    return deliver(make_result(given), callbacks_, host_, results_);
  }

 private:
  const SearchCallbacks& callbacks_;
  HostCalls& host_;
  std::vector<ModelResult>& results_;
};

Progress to_progress(const SearchProgress& p) {
  Progress out;
  HMMJIT_COPY_MEMBERS(HMMJIT_PROGRESS_MEMBERS, 0)(out, p);
  return out;
}

// Calls the progress callback now and then, and once at the end.
class Ticker {
 public:
  Ticker(const SearchCallbacks& callbacks, const SearchProgress& progress, HostCalls& host,
         std::atomic<bool>& stop)
      : callbacks_(callbacks), progress_(progress), host_(host), stop_(stop) {
    if (!callbacks_.progress) return;
    thread_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!wake_.wait_for(lock, callbacks_.interval, [this] { return ended_; })) report();
    });
  }
  ~Ticker() { end(); }
  void end() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  void report() {
    if (!callbacks_.progress || stop_) return;
    bool go_on = false;
    host_.run([&] { go_on = callbacks_.progress(to_progress(progress_)); });
    if (!go_on) stop_ = true;
  }

 private:
  const SearchCallbacks& callbacks_;
  const SearchProgress& progress_;
  HostCalls& host_;
  std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

std::optional<double> positions_of(const Models::Impl& models) {
  if (!models.path.empty()) return positions_of_file(models.path);
  double sum = 0;
  for (const Model& model : models.models) sum += model.length();
  return sum;
}

// Passes warnings to the host, one at a time.
class Warnings {
 public:
  Warnings(const SearchCallbacks& callbacks, HostCalls& host, std::atomic<bool>& stop)
      : callbacks_(callbacks), host_(host), stop_(stop) {}
  void give(const Error& warning) {
    if (!callbacks_.warning) return;
    const std::lock_guard lock(mutex_);
    if (!host_.run([&] { callbacks_.warning(warning); })) stop_ = true;
  }

 private:
  const SearchCallbacks& callbacks_;
  HostCalls& host_;
  std::atomic<bool>& stop_;
  std::mutex mutex_;
};

DeviceChoice to_choice(const SearchOptions& options) {
  using Use = DeviceChoice::Use;
  return {.use = options.device == DeviceUse::kGpu    ? Use::kGpu
                 : options.device == DeviceUse::kAuto ? Use::kAuto
                                                      : Use::kCpu,
          .ordinals = options.gpus,
          .vram = options.vram};
}

std::unique_ptr<gpu::GpuFilters> start_gpu(const OpenDriver& open_driver,
                                           const SearchOptions& options, Warnings& warnings) {
  gpu::Settings settings = device_settings(to_choice(options));
  settings.open_driver = open_driver;
  settings.on_warning = [&warnings](const std::string& text) {
    warnings.give(Error(ErrorCode::kNoDevice, text));
  };
  std::shared_ptr<cache::KernelCache> given;
  if (options.cache) given = options.cache->impl()->cache;
  settings.open_kernels = [given, &warnings]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    // The default is the environment's cache; its warnings go to the search's callback.
    std::shared_ptr<cache::KernelCache> kernels = given;
    if (kernels == nullptr) {
      HMMJIT_ASSIGN(cache::Settings from_environment, cache::settings_from_environment());
      from_environment.on_warning = [&warnings](const hmmjit::Error& warning) {
        warnings.give(to_public(warning));
      };
      kernels = cache::KernelCache::open(std::move(from_environment));
    }
    // The driver is open by now; its version bounds the compiler's.
    const int version = driver::open_cuda_library().report.version;
    return gpu::open_kernel_source(version / 1000, {}, std::move(kernels));
  };
  return std::make_unique<gpu::GpuFilters>(std::move(settings));
}

SearchStatistics to_statistics(const hmmjit::SearchStatistics& s,
                               const std::optional<gpu::Statistics>& gpu,
                               const std::string& device_note) {
  SearchStatistics to;
  HMMJIT_COPY_MEMBERS(HMMJIT_SEARCH_STATISTICS_MEMBERS, 18)(to, s);
  to.device = device_note;
  to.ssv_seconds = s.filters.ssv;
  to.msv_seconds = s.filters.msv;
  to.bias_seconds = s.filters.bias;
  to.viterbi_seconds = s.filters.viterbi;
  to.counts = to_counts(s.counters);
  to.peak_resident_bytes = peak_resident_memory();
  if (gpu) {
    to.device = gpu->reason.empty() ? gpu->state : gpu->state + ": " + gpu->reason;
    to.device_cells = gpu->cells;
    to.device_launches = gpu->launches;
    to.device_busy_seconds = gpu->busy_seconds;
    to.device_active_seconds = gpu->active_seconds;
    to.device_peak_bytes = gpu->peak_device_bytes;
    to.device_upload_bytes = gpu->upload_bytes;
    to.kernels = gpu->distinct_kernels;
    to.kernels_compiled = gpu->kernels.compiled;
    to.kernels_loaded = gpu->kernels.memory_hits + gpu->kernels.disk_hits;
    to.compile_seconds = gpu->kernels.compile_seconds;
  }
  to.json = run_statistics_json({"libhmmjit", HMMJIT_VERSION, s, gpu, device_note});
  return to;
}

struct SearchedModels {
  const hmmjit::Alphabet* alphabet;
  ModelSource source;
};

// At least one model, without those that are skipped for their lack of cutoffs.
SearchedModels open_searched(const Models& models, const SearchOptions& options,
                             const Thresholds& rules) {
  const bool skips =
      options.cutoffs != ModelCutoffs::kNone && options.missing_cutoffs == MissingCutoffs::kSkip;
  const auto next = [skips, rules, all = value(open_models(models.impl()))] {
    for (;;) {
      Result<std::optional<Query>> model = all();
      if (!skips || !model || !*model || cutoff_of((*model)->hmm, rules)) return model;
    }
  };
  std::optional<Query> first = value(next());
  if (!first)
    throw Error(ErrorCode::kInput,
                skips ? "no model has the cutoffs asked for" : "no model to search with",
                models.impl()->path);
  const hmmjit::Alphabet* alphabet = first->hmm.alphabet;
  return {alphabet, [next, first = std::move(first)]() mutable {
            return first ? std::exchange(first, std::nullopt) : next();
          }};
}

// `wrong_kernel`: why a search is repeated on the CPU; empty: it is no repetition.
SearchResults run_search(const OpenDriver& open_driver, const Models& models,
                         const Targets& targets, const SearchOptions& options,
                         const SearchCallbacks& callbacks, HostCalls& host,
                         SearchHook* hook = nullptr, const std::string& wrong_kernel = {}) {
  check_options(options);
  hmmjit::SearchOptions internal = to_options(options);
  std::atomic<bool> stop{false};
  internal.cancelled = [&] {
    return stop.load(std::memory_order_relaxed) ||
           (callbacks.cancellation && callbacks.cancellation->cancelled());
  };
  const auto interrupted = [] { throw Error(ErrorCode::kInterrupted, "the search was cancelled"); };
  if (internal.cancelled()) interrupted();

  Warnings warnings(callbacks, host, stop);
  internal.on_warning = [&warnings](const std::string& text) {
    warnings.give(Error(ErrorCode::kInternal, text));
  };
  std::string device_note = wrong_kernel;
  std::unique_ptr<gpu::GpuFilters> gpu;
  const auto positions = [&] { return positions_of(*models.impl()); };
  const auto residues = [&]() -> std::optional<double> {
    const Targets::Impl& t = *targets.impl();
    return t.path.empty() ? static_cast<double>(t.residues) : residues_of_file(t.path);
  };
  if (wrong_kernel.empty() &&
      value(starts_devices(to_choice(options), internal, positions, residues, device_note)))
    gpu = start_gpu(open_driver, options, warnings);

  SearchedModels searched = open_searched(models, options, internal.thresholds);
  const hmmjit::Alphabet& alphabet = *searched.alphabet;
  ModelSource all = std::move(searched.source);
  std::shared_ptr<TargetSource> target_source;
  if (hook != nullptr) {
    hook->begin(internal, alphabet, std::move(all));
    all = hook->models();
    target_source = hook->targets();
  } else {
    target_source = value(open_targets(targets.impl(), alphabet, options));
  }
  SearchResults out;
  SearchProgress progress;
  Collector sink(callbacks, host, out.models);
  Ticker ticker(callbacks, progress, host, stop);
  const auto statistics =
      hmmjit::search(internal, all, *target_source, gpu.get(),
                     hook != nullptr ? hook->sink() : static_cast<ResultSink&>(sink), &progress);
  ticker.end();
  if (!host.failed() && statistics) ticker.report();
  std::optional<gpu::Statistics> gpu_statistics;
  if (gpu != nullptr) gpu_statistics = gpu->statistics();
  // From here on no device thread calls the host.
  gpu.reset();
  if (host.failed()) throw HostFailed{};
  if (!statistics && progress.wrong_kernel && hook == nullptr &&
      (progress.results_delivered == 0 || !callbacks.result)) {
    const std::string note = statistics.error().where + ": " + statistics.error().message;
    warnings.give(Error(ErrorCode::kInternal, note + "; the search is repeated on the CPU"));
    return run_search(open_driver, models, targets, options, callbacks, host, nullptr, note);
  }
  if (!statistics) raise(statistics.error());
  out.statistics = to_statistics(*statistics, gpu_statistics, device_note);
  out.options = options;
  return out;
}

nucleotide::Options to_nucleotide_options(const NhmmerOptions& o,
                                          const hmmjit::SearchOptions& search) {
  require(
      o.strands == Strands::kBoth || o.strands == Strands::kTop || o.strands == Strands::kBottom,
      "strands", "both, top or bottom");
  require(o.window_length == 0 || o.window_length >= 4, "window_length",
          "4 residues and more, or 0 for the model's");
  require(o.window_beta >= 0 && o.window_beta <= 1, "window_beta", "0 to 1");
  require(o.B1 > 0 && o.B2 > 0 && o.B3 > 0, "B1, B2, B3", "1 and more residues");
  require(o.block_length >= 50000, "block_length", "50,000 and more residues");
  if (o.search.device == DeviceUse::kGpu)
    throw Error(ErrorCode::kNoDevice, "nucleotides are searched on the CPU", "device",
                "search with device = cpu");
  nucleotide::Options out{.F1 = search.filters.F1,
                          .F2 = search.filters.F2,
                          .F3 = search.filters.F3,
                          .bias = search.filters.bias,
                          .B1 = o.B1,
                          .B2 = o.B2,
                          .B3 = o.B3,
                          .domain = search.domain,
                          .strands = static_cast<nucleotide::Strands>(o.strands),
                          .block_length = o.block_length,
                          .Z = o.search.Z,
                          .keep_alignments = o.search.keep_alignments,
                          .threads = search.threads};
  if (o.search.max_sensitivity) out.F1 = 0.02;  // SSV finds the windows
  return out;
}

SearchResults run_nhmmer(const Models& models, const Targets& targets, const NhmmerOptions& options,
                         const SearchCallbacks& callbacks, HostCalls& host) {
  check_options(options.search);
  const hmmjit::SearchOptions search = to_options(options.search);
  NucleotideRun run{.options = to_nucleotide_options(options, search),
                    .next_query = {},
                    .receive = {},
                    .target_file = targets.impl()->path,
                    .memory = search.memory};
  std::atomic<bool> stop{false};
  run.options.cancelled = [&] {
    return stop.load(std::memory_order_relaxed) ||
           (callbacks.cancellation && callbacks.cancellation->cancelled());
  };
  SearchedModels searched = open_searched(models, options.search, search.thresholds);
  if (searched.alphabet->type == AlphabetType::kAmino)
    throw Error(ErrorCode::kInput, "the models are of proteins, not of DNA or RNA",
                models.impl()->path, "use search");
  run.next_query = [&]() -> Result<std::optional<nucleotide::Query>> {
    HMMJIT_ASSIGN(std::optional<Query> model, searched.source());
    if (!model) return std::nullopt;
    const Hmm& hmm = model->hmm;
    int length = options.window_length;
    if (length == 0 && options.window_beta > 0) length = max_length(hmm, options.window_beta);
    if (length == 0) length = hmm.max_length ? *hmm.max_length : max_length(hmm, 1e-7);
    return make_nucleotide_query(std::move(model->hmm), length, search.thresholds);
  };
  SearchResults out;
  run.receive = [&](const NucleotideResult& result, const hmmjit::ModelResult& single) {
    const NucleotideFields fields{result.hits.extents.position, run.options.F1, run.options.F2,
                                  run.options.F3};
    return deliver(make_result(single, fields), callbacks, host, out.models);
  };
  const auto source = value(open_targets(targets.impl(), *searched.alphabet, options.search));
  SearchProgress progress;
  Ticker ticker(callbacks, progress, host, stop);
  const auto statistics = run_nucleotides(run, *source, progress);
  ticker.end();
  if (!host.failed() && statistics) ticker.report();
  if (host.failed()) throw HostFailed{};
  if (!statistics) raise(statistics.error());
  out.statistics = to_statistics(*statistics, std::nullopt, "none for nucleotides");
  out.options = options.search;
  return out;
}

}  // namespace

SearchResults nhmmer(const Models& models, const Targets& targets, const NhmmerOptions& options,
                     const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] { return run_nhmmer(models, targets, options, callbacks, host); });
}

SearchResults search_on(const OpenDriver& open_driver, const Models& models, const Targets& targets,
                        const SearchOptions& options, const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(
      host, [&] { return run_search(open_driver, models, targets, options, callbacks, host); });
}

SearchResults search_with(SearchHook& hook, const Models& models, const Targets& targets,
                          const SearchOptions& options, const SearchCallbacks& callbacks,
                          HostCalls& host) {
  return run_search({}, models, targets, options, callbacks, host, &hook);
}

SearchResults search(const Models& models, const Targets& targets, const SearchOptions& options,
                     const SearchCallbacks& callbacks) {
  return search_on({}, models, targets, options, callbacks);  // this machine's driver
}

}  // namespace hmmjit::v0
