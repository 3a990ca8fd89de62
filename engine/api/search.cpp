// The search for host programs: the pipeline of engine/search, callbacks and cancellation.
#include "hmmjit/search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "api/convert.hpp"
#include "api/defaults.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/results.hpp"
#include "api/structs.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "hmmjit/nhmmer.hpp"
#include "io/hmm_file.hpp"
#include "nucleotide/device_scan.hpp"
#include "report/nucleotide_run.hpp"
#include "report/run_statistics.hpp"
#include "report/scan_run.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {

struct CancellationImpl {
  hmmjit::Cancellation value;
};
Cancellation::Cancellation() : SharedHandle(guarded([] { return std::make_shared<Impl>(); })) {}
void Cancellation::cancel() noexcept { impl_->value.cancel(); }
bool Cancellation::cancelled() const noexcept { return impl_->value.cancelled(); }
static_assert(std::is_standard_layout_v<hmmjit_cancellation>);
const hmmjit_cancellation* Cancellation::c_handle() const noexcept {
  return reinterpret_cast<const hmmjit_cancellation*>(this);
}

void require(bool sensible, const char* option, const char* takes) {
  if (!sensible)
    throw Error(ErrorCode::kUsage, "an option makes no sense", option,
                std::string("it takes ") + takes);
}

SearchOptions::SearchOptions(Program program) noexcept
    : hmmjit_search_options(hmmjit_defaults::kSearchOptions) {
  if (program == Program::kJackhmmer) incE = incdomE = 0.001;
  if (program == Program::kNhmmer) {
    F2 = 3e-3;
    F3 = 3e-5;
  }
}
NhmmerOptions::NhmmerOptions() noexcept : hmmjit_nhmmer_options(hmmjit_defaults::kNhmmerOptions) {}

namespace {

std::vector<int> gpus_of(const hmmjit_search_options& o) {
  if (o.gpu_count == 0) return {0};
  const std::int32_t* gpus = &required(o.gpus, "gpus");
  return {gpus, gpus + o.gpu_count};
}

}  // namespace

void check_options(const hmmjit_search_options& o) {
  check_choice(o.cutoffs, HMMJIT_CUT_TABLE, "kind of cutoffs");
  check_choice(o.missing_cutoffs, HMMJIT_MISSING_DEFAULT, "missing_cutoffs");
  check_choice(o.device, HMMJIT_DEVICE_GPU, "kind of device");
  for (const double F : {o.F1, o.F2, o.F3})
    require(F > 0, "F1, F2, F3", "a probability above 0; 1 and more turn the filter off");
  for (const double e_value : {o.E, o.domE, o.incE, o.incdomE})
    require(e_value > 0, "E, domE, incE, incdomE", "a number above 0");
  for (const double Z : {o.Z, o.domZ})
    require(Z >= 0 && std::isfinite(Z), "Z, domZ", "a finite number above 0");
  constexpr std::uint64_t kLeastMemory = 64 << 10;  // a smaller number probably lacks its unit
  require(o.memory == 0 || o.memory >= kLeastMemory, "memory",
          "65,536 and more bytes, or 0 for half of the free memory");
  require(o.threads >= 0 && o.threads <= 1024, "threads", "0 to 1024");
  require(o.verify >= -1, "verify", "0 or more, or -1 for the default");
  require(o.target_count >= -1, "target_count", "a number, or -1 for all");
  const std::vector<int> gpus = gpus_of(o);
  require(std::set(gpus.begin(), gpus.end()).size() == gpus.size() && std::ranges::min(gpus) >= 0,
          "gpus", "different ordinals of devices");
  for (std::size_t i = 0; i < o.cutoff_count; ++i)
    required((&required(o.cutoff_table, "cutoff_table"))[i].model, "model");
}

namespace {

static_assert(static_cast<int>(hmmjit::ModelCutoffs::kGathering) == HMMJIT_CUT_GA &&
              static_cast<int>(hmmjit::ModelCutoffs::kNoise) == HMMJIT_CUT_NC &&
              static_cast<int>(hmmjit::ModelCutoffs::kTrusted) == HMMJIT_CUT_TC &&
              static_cast<int>(hmmjit::ModelCutoffs::kTable) == HMMJIT_CUT_TABLE);

std::shared_ptr<const hmmjit::CutoffTable> to_table(const hmmjit_search_options& o) {
  // NaN, no threshold: a score that every target and domain reaches.
  const auto score = [](double s) { return std::isnan(s) ? -999.0f : static_cast<float>(s); };
  auto table = std::make_shared<hmmjit::CutoffTable>();
  for (const hmmjit_cutoff& c : std::span(o.cutoff_table, o.cutoff_count))
    (*table)[c.model] = {score(c.score), score(c.domain_score)};
  return table;
}

/// The options for reports and parts, without those of the machine and of the targets.
SearchOptions kept_options(const hmmjit_search_options& options) {
  const auto left_out = [](auto& o) {
    return std::tie(o.threads, o.device, o.memory, o.vram, o.gpus, o.gpu_count, o.verify, o.cache,
                    o.first_target, o.target_count, o.cutoff_table, o.cutoff_count);
  };
  const SearchOptions usual;
  SearchOptions out;
  static_cast<hmmjit_search_options&>(out) = options;
  left_out(out) = left_out(usual);
  return out;
}

}  // namespace

hmmjit::SearchOptions to_options(const hmmjit_search_options& o) {
  const auto threshold = [](double e_value, double score) {
    return hmmjit::Threshold{e_value, std::isnan(score) ? std::nullopt : std::optional(score)};
  };
  const auto number = [](double Z) { return Z == 0 ? std::nullopt : std::optional(Z); };
  hmmjit::SearchOptions out;
  out.thresholds.target = threshold(o.E, o.T);
  out.thresholds.domain = threshold(o.domE, o.domT);
  out.thresholds.include_target = threshold(o.incE, o.incT);
  out.thresholds.include_domain = threshold(o.incdomE, o.incdomT);
  out.thresholds.cutoffs = static_cast<hmmjit::ModelCutoffs>(o.cutoffs);
  if (o.cutoffs == HMMJIT_CUT_TABLE) out.thresholds.table = to_table(o);
  if (o.missing_cutoffs == HMMJIT_MISSING_DEFAULT)
    out.thresholds.missing = hmmjit::MissingCutoffs::kDefault;
  out.thresholds.Z = number(o.Z);
  out.thresholds.domZ = number(o.domZ);
  if (o.max_sensitivity != 0) {
    out.filters = FilterOptions::max_sensitivity();
  } else {
    out.filters = {std::min(1.0, o.F1), std::min(1.0, o.F2), std::min(1.0, o.F3),
                   o.bias_filter != 0};
  }
  out.domain.null2 = o.null2 != 0;
  set_seed(out.domain, o.seed);
  out.keep_alignments = o.keep_alignments != 0;
  if (o.verify >= 0) out.verify = o.verify;
  out.threads = o.threads > 0 ? o.threads : available_cores();
  out.memory = o.memory;
  return out;
}

namespace {

Progress to_progress(const SearchProgress& p) {
  const auto members = [](auto& o) {
    return std::tie(o.models_started, o.models_done, o.targets, o.residues, o.target_bytes_read,
                    o.target_bytes_total, o.cells, o.cells_queued, o.targets_complete);
  };
  Progress out{};
  out.size = sizeof out;
  members(out) = members(p);
  return out;
}

const hmmjit::Cancellation* cancellation_of(const SearchCallbacks& callbacks) {
  return callbacks.cancellation ? &callbacks.cancellation->impl()->value : nullptr;
}

// The callbacks of a search, which may cancel it.
class Watch {
 public:
  Watch(const SearchCallbacks& callbacks, HostCalls& host)
      : callbacks_(callbacks), host_(host), stop_(cancellation_of(callbacks)) {}
  const hmmjit::Cancellation& stop() const { return stop_; }
  // Passes on one warning at a time.
  void warn(const Error& warning) {
    if (!callbacks_.warning) return;
    const std::lock_guard lock(mutex_);
    if (!host_.run([&] { callbacks_.warning(warning); })) stop_.cancel();
  }
  // Calls `search`, and meanwhile the progress callback at intervals; after success, once more.
  template <typename Search>
  Result<hmmjit::SearchStatistics> run(const SearchProgress& progress, Search&& search) {
    std::jthread ticking;
    if (callbacks_.progress)
      ticking = std::jthread([&](const std::stop_token& ended) {
        using std::chrono::milliseconds, std::chrono::hours;
        // Longer intervals would overflow as times.
        const auto interval =
            std::clamp<milliseconds>(callbacks_.interval, milliseconds(1), hours(24));
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;
        const auto over = [&] { return ended.stop_requested(); };
        while (!wake.wait_for(lock, ended, interval, over)) report(progress);
      });
    Result<hmmjit::SearchStatistics> statistics = search();
    ticking = {};
    if (!host_.failed() && statistics) report(progress);
    if (host_.failed()) throw HostFailed{};
    return statistics;
  }

 private:
  void report(const SearchProgress& progress) {
    if (!callbacks_.progress || stop_.cancelled()) return;
    bool go_on = false;
    host_.run([&] { go_on = callbacks_.progress(to_progress(progress)); });
    if (!go_on) stop_.cancel();
  }

  const SearchCallbacks& callbacks_;
  HostCalls& host_;
  hmmjit::Cancellation stop_;
  std::mutex mutex_;
};

std::optional<double> positions_of(const Models::Impl& models) {
  if (!models.path.empty()) return positions_of_file(models.path);
  double sum = 0;
  for (const Model& model : models.models) sum += model.info().length;
  return sum;
}

std::size_t count_models(const Models::Impl& models) {
  if (models.path.empty()) return models.models.size();
  HmmReader reader = value(HmmReader::open(models.path));
  return value(reader.count());
}

std::optional<double> residues_of(const Targets::Impl& targets) {
  return targets.path.empty() || targets.source ? static_cast<double>(targets.residues)
                                                : residues_of_file(targets.path);
}

DeviceChoice to_choice(const hmmjit_search_options& options) {
  using Use = DeviceChoice::Use;
  return {.use = options.device == HMMJIT_DEVICE_GPU    ? Use::kGpu
                 : options.device == HMMJIT_DEVICE_AUTO ? Use::kAuto
                                                        : Use::kCpu,
          .ordinals = gpus_of(options),
          .vram = options.vram};
}

// `warn` receives warnings of the cache; objects that it refers to must outlive the devices.
gpu::Settings gpu_settings(const std::function<void(const hmmjit::Error&)>& warn,
                           const OpenDriver& open_driver, const hmmjit_search_options& options,
                           const DeviceChoice& choice) {
  gpu::Settings settings = device_settings(choice);
  settings.open_driver = open_driver;
  std::shared_ptr<cache::KernelCache> given;
  if (options.cache != nullptr) given = options.cache->value.impl()->cache;
  settings.open_kernels = [given, warn]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    // Default: the environment's cache, with warnings to the search's callback.
    std::shared_ptr<cache::KernelCache> kernels = given;
    if (kernels == nullptr) {
      HMMJIT_ASSIGN(cache::Settings from_environment, cache::settings_from_environment());
      from_environment.on_warning = warn;
      kernels = cache::KernelCache::open(std::move(from_environment));
    }
    // The driver is open by now; its version bounds the compiler's.
    const int version = driver::open_cuda_library().report.version;
    return gpu::open_kernel_source(version / 1000, {}, std::move(kernels));
  };
  return settings;
}

SearchStatistics to_statistics(const hmmjit::SearchStatistics& s,
                               const std::optional<gpu::Statistics>& gpu,
                               const std::string& device_note) {
  struct Texts {
    std::string backend, device, json;
  };
  const auto texts = std::make_shared<Texts>();
  texts->backend = s.backend;
  texts->device = device_note;
  texts->json = run_statistics_json({"libhmmjit", HMMJIT_VERSION, s, gpu, device_note});
  const auto members = [](auto& o) {
    return std::tie(o.threads, o.models, o.targets, o.residues, o.passes, o.hits_reported,
                    o.domains_reported, o.wall_seconds, o.read_seconds, o.setup_seconds,
                    o.scoring_seconds, o.report_seconds, o.streamed, o.spooled, o.verified);
  };
  SearchStatistics to;
  to.size = sizeof(hmmjit_search_statistics);
  members(to) = members(s);
  to.ssv_seconds = s.filters.ssv;
  to.msv_seconds = s.filters.msv;
  to.bias_seconds = s.filters.bias;
  to.viterbi_seconds = s.filters.viterbi;
  to.counts = to_counts(s.counters);
  to.peak_resident_bytes = peak_resident_memory();
  if (gpu) {
    texts->device = gpu->reason.empty() ? gpu->state : gpu->state + ": " + gpu->reason;
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
  to.backend = texts->backend.c_str();
  to.device = texts->device.c_str();
  to.json = texts->json.c_str();
  to.texts = texts;
  return to;
}

struct SearchedModels {
  const hmmjit::Alphabet* alphabet;
  ModelSource source;
};

// Opens the models, without those skipped for missing cutoffs; at least one must remain.
SearchedModels open_searched(const Models& models, const hmmjit_search_options& options,
                             const Thresholds& rules) {
  const bool skips =
      options.cutoffs != HMMJIT_CUT_NONE && options.missing_cutoffs == HMMJIT_MISSING_SKIP;
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

}  // namespace

SearchResults run_search(hmmjit::Session& session, const OpenDriver& open_driver,
                         const Models& models, const Targets& targets,
                         const hmmjit_search_options& options, const SearchCallbacks& callbacks,
                         HostCalls& host, bool restarts, const SearchBody& body) {
  check_options(options);
  hmmjit::SearchOptions internal = to_options(options);
  Watch watch(callbacks, host);
  internal.cancellation = &watch.stop();
  if (watch.stop().cancelled()) throw Error(ErrorCode::kInterrupted, "the search was cancelled");
  internal.on_warning = [&watch](const hmmjit::Error& warning) { watch.warn(to_public(warning)); };
  const auto positions = [&] { return positions_of(*models.impl()); };
  const auto residues = [&] { return residues_of(*targets.impl()); };
  const auto earlier = session.device_statistics().value_or(gpu::Statistics());
  check(session.start(
      to_choice(options), internal, positions, residues, [&](const DeviceChoice& choice) {
        return gpu_settings([&session](const hmmjit::Error& warning) { session.warn(warning); },
                            open_driver, options, choice);
      }));
  for (;;) {
    SearchedModels searched = open_searched(models, options, internal.thresholds);
    SearchProgress progress;
    const auto statistics = watch.run(
        progress, [&] { return body(internal, *searched.alphabet, searched.source, progress); });
    if (statistics)
      return {.models = {},
              .statistics = to_statistics(*statistics, session.device_statistics(earlier),
                                          session.device_note()),
              .options = kept_options(options)};
    if (!session.leave_devices(internal, progress, statistics.error(),
                               restarts || progress.results_delivered == 0))
      raise(statistics.error());
  }
}

namespace {

nucleotide::Options to_nucleotide_options(const hmmjit_nhmmer_options& o, bool max_sensitivity,
                                          const hmmjit::SearchOptions& search) {
  check_choice(o.strands, HMMJIT_STRANDS_BOTTOM, "strands");
  require(o.window_length == 0 || o.window_length >= 4, "window_length",
          "4 residues and more, or 0 for the model's");
  require(o.window_beta >= 0 && o.window_beta <= 1, "window_beta", "0 to 1");
  require(o.B1 > 0 && o.B2 > 0 && o.B3 > 0, "B1, B2, B3", "1 and more residues");
  require(o.block_length >= 50000, "block_length", "50,000 and more residues");
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
                          .Z = search.thresholds.Z,
                          .keep_alignments = search.keep_alignments,
                          .threads = search.threads};
  if (max_sensitivity) out.F1 = 0.02;  // SSV finds the windows
  return out;
}

SearchResults run_nhmmer(const OpenDriver& open_driver, const Models& models,
                         const Targets& targets, const hmmjit_nhmmer_options& options,
                         const SearchCallbacks& callbacks, HostCalls& host) {
  const hmmjit_search_options given = read(options.search, SearchOptions(Program::kNhmmer));
  check_options(given);
  hmmjit::SearchOptions search = to_options(given);
  NucleotideRun run{.options = to_nucleotide_options(options, given.max_sensitivity != 0, search),
                    .next_query = {},
                    .receive = {},
                    .target_file = targets.impl()->path,
                    .search = search};
  Watch watch(callbacks, host);
  run.options.cancellation = &watch.stop();
  search.on_warning = [&watch](const hmmjit::Error& warning) { watch.warn(to_public(warning)); };
  SearchedModels searched = open_searched(models, given, search.thresholds);
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
  run.receive = [&](const hmmjit::ModelResult& result) {
    return deliver(make_result(result), callbacks, host, out.models);
  };
  auto source = value(open_targets(targets.impl(), *searched.alphabet, given));
  DeviceChoice choice = to_choice(given);
  if (choice.use == DeviceChoice::Use::kGpu)
    require(choice.ordinals.size() == 1, "gpus", "one device for nucleotides");
  choice.ordinals.resize(1);
  std::string device_note;
  std::optional<nucleotide::DeviceScan> scan;
  if (value(starts_devices(
          choice, search, [&] { return positions_of(*models.impl()); },
          [&] {
            std::optional<double> residues = residues_of(*targets.impl());
            if (residues) *residues *= 2;  // both strands
            return residues;
          },
          device_note))) {
    gpu::Settings settings = gpu_settings(search.on_warning, open_driver, given, choice);
    settings.on_warning = [&watch](const std::string& text) {
      watch.warn(Error(ErrorCode::kInternal, text));
    };
    run.device = &scan.emplace(std::move(settings));
  }
  for (;;) {
    SearchProgress progress;
    const auto statistics =
        watch.run(progress, [&] { return run_nucleotides(run, *source, progress); });
    if (statistics) {
      out.statistics = to_statistics(
          *statistics, scan ? std::optional(scan->statistics()) : std::nullopt, device_note);
      out.options = kept_options(given);
      return out;
    }
    const bool repeatable = progress.results_delivered == 0 || !callbacks.result;
    if (!repeats_on_cpu(search, progress, statistics.error(), repeatable))
      raise(statistics.error());
    device_note = statistics.error().to_string();
    scan.reset();
    run.device = nullptr;
    out.models.clear();
    searched = open_searched(models, given, search.thresholds);
    source = value(open_targets(targets.impl(), *searched.alphabet, given));
  }
}

}  // namespace

SearchResults nhmmer_on(const OpenDriver& open_driver, const Models& models, const Targets& targets,
                        const hmmjit_nhmmer_options& options, const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(
      host, [&] { return run_nhmmer(open_driver, models, targets, options, callbacks, host); });
}

SearchResults nhmmer(const Models& models, const Targets& targets,
                     const hmmjit_nhmmer_options& options, const SearchCallbacks& callbacks) {
  return nhmmer_on({}, models, targets, options, callbacks);
}

namespace {

SearchResults search_or_scan(bool scans, const OpenDriver& open_driver, const Models& models,
                             const Targets& targets, const hmmjit_search_options& options,
                             const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] {
    require(!scans || options.missing_cutoffs == HMMJIT_MISSING_ERROR, "missing_cutoffs",
            "\"error\" in a scan");
    hmmjit::Session own;
    hmmjit::Session& session = session_of(targets, options, own);
    const std::size_t count = scans ? count_models(*models.impl()) : 0;
    std::vector<ModelResult> results;
    const auto receive = [&](const hmmjit::ModelResult& result) {
      return deliver(make_result(result, scans), callbacks, host, results);
    };
    const SearchBody body = [&](const hmmjit::SearchOptions& internal,
                                const hmmjit::Alphabet& alphabet, const ModelSource& source,
                                SearchProgress& progress) {
      const auto opened = value(open_targets(targets.impl(), alphabet, options));
      results.clear();
      FunctionSink sink(receive);
      if (!scans) return session.search(internal, source, *opened, sink, progress);
      const auto open_all = [&](const TargetBlock&) -> Result<SelectedModels> {
        return SelectedModels{.models = count, .source = value(open_models(models.impl()))};
      };
      const ScanRun run{.search = internal, .open_models = open_all, .receive = receive};
      return run_scan(session, run, *opened, progress);
    };
    SearchResults out = run_search(session, open_driver, models, targets, options, callbacks, host,
                                   !callbacks.result, body);
    out.models = std::move(results);
    return out;
  });
}

}  // namespace

SearchResults search_on(const OpenDriver& open_driver, const Models& models, const Targets& targets,
                        const hmmjit_search_options& options, const SearchCallbacks& callbacks) {
  return search_or_scan(false, open_driver, models, targets, options, callbacks);
}

SearchResults search(const Models& models, const Targets& targets,
                     const hmmjit_search_options& options, const SearchCallbacks& callbacks) {
  return search_or_scan(false, {}, models, targets, options, callbacks);
}

SearchResults scan(const Models& models, const Targets& sequences,
                   const hmmjit_search_options& options, const SearchCallbacks& callbacks) {
  return search_or_scan(true, {}, models, sequences, options, callbacks);
}

}  // namespace hmmjit::v0
