// The search for host programs: the pipeline of engine/search, callbacks and cancellation.
#include "hmmjit/search.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/results.hpp"
#include "core/threads.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {

struct Cancellation::Impl {
  std::atomic<bool> cancelled{false};
};
Cancellation::Cancellation() : impl_(std::make_shared<Impl>()) {}
void Cancellation::cancel() noexcept { impl_->cancelled = true; }
bool Cancellation::cancelled() const noexcept { return impl_->cancelled; }

namespace {

void require(bool sensible, const char* option, const char* takes) {
  if (!sensible)
    throw Error(ErrorCode::kUsage, "an option makes no sense", option,
                std::string("it takes ") + takes);
}

void check_options(const SearchOptions& o) {
  for (const double F : {o.F1, o.F2, o.F3})
    require(F > 0, "F1, F2, F3", "a probability above 0; 1 and more turn the filter off");
  for (const Threshold& t : {o.report, o.report_domain, o.include, o.include_domain})
    require(t.e_value > 0, "a threshold's e_value", "a number above 0");
  require(!o.Z || *o.Z > 0, "Z", "a number above 0");
  require(!o.domZ || *o.domZ > 0, "domZ", "a number above 0");
  require(o.threads >= 0 && o.threads <= 1024, "threads", "0 to 1024");
  require(o.verify >= 0, "verify", "0 or more");
  require(!o.gpus.empty() && std::set(o.gpus.begin(), o.gpus.end()).size() == o.gpus.size() &&
              *std::min_element(o.gpus.begin(), o.gpus.end()) >= 0,
          "gpus", "different ordinals of devices");
}

hmmjit::Threshold to_threshold(const Threshold& t) { return {t.e_value, t.score}; }

hmmjit::SearchOptions to_options(const SearchOptions& o) {
  hmmjit::SearchOptions out;
  out.thresholds.target = to_threshold(o.report);
  out.thresholds.domain = to_threshold(o.report_domain);
  out.thresholds.include_target = to_threshold(o.include);
  out.thresholds.include_domain = to_threshold(o.include_domain);
  out.thresholds.cutoffs = static_cast<hmmjit::ModelCutoffs>(o.cutoffs);
  out.thresholds.Z = o.Z;
  out.thresholds.domZ = o.domZ;
  if (o.max_sensitivity) {
    out.filters = FilterOptions::max_sensitivity();
  } else {
    out.filters = {std::min(1.0, o.F1), std::min(1.0, o.F2), std::min(1.0, o.F3), o.bias_filter};
  }
  out.domain.null2 = o.null2;
  out.domain.seed = o.seed;
  if (o.seed == 0) {
    out.domain.seed = std::random_device{}() | 1u;
    out.domain.reseed = false;
  }
  out.keep_alignments = o.keep_alignments;
  out.verify = o.verify;
  out.threads = o.threads > 0 ? o.threads : available_cores();
  out.memory = o.memory;
  return out;
}
static_assert(static_cast<int>(ModelCutoffs::kGathering) ==
                  static_cast<int>(hmmjit::ModelCutoffs::kGathering) &&
              static_cast<int>(ModelCutoffs::kNoise) ==
                  static_cast<int>(hmmjit::ModelCutoffs::kNoise) &&
              static_cast<int>(ModelCutoffs::kTrusted) ==
                  static_cast<int>(hmmjit::ModelCutoffs::kTrusted));

// The first exception of a callback; it ends the search and leaves it through the caller.
class CallbackFailure {
 public:
  /// False when `call` threw.
  template <typename Call>
  bool run(Call&& call) {
    try {
      call();
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!exception_) exception_ = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
};

class Collector final : public ResultSink {
 public:
  Collector(const SearchCallbacks& callbacks, CallbackFailure& failure,
            std::vector<ModelResult>& results)
      : callbacks_(callbacks), failure_(failure), results_(results) {}
  Status receive(const hmmjit::ModelResult& given) override {
    const bool done = failure_.run([&] {
      ModelResult result = make_result(given);
      if (callbacks_.result) {
        callbacks_.result(result);
      } else {
        results_.push_back(std::move(result));
      }
    });
    if (done) return {};
    return fail(hmmjit::ErrorCode::kInterrupted, "a callback of the search failed");
  }

 private:
  const SearchCallbacks& callbacks_;
  CallbackFailure& failure_;
  std::vector<ModelResult>& results_;
};

Progress to_progress(const SearchProgress& p) {
  Progress out;
  out.models_started = p.models_started;
  out.models_done = p.models_done;
  out.targets = p.targets;
  out.residues = p.residues;
  out.targets_complete = p.targets_complete;
  out.target_bytes_read = p.target_bytes_read;
  out.target_bytes_total = p.target_bytes_total;
  out.cells = p.cells;
  out.cells_queued = p.cells_queued;
  return out;
}

// Calls the progress callback now and then, and once at the end.
class Ticker {
 public:
  Ticker(const SearchCallbacks& callbacks, const SearchProgress& progress, CallbackFailure& failure,
         std::atomic<bool>& stop)
      : callbacks_(callbacks), progress_(progress), failure_(failure), stop_(stop) {
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
    failure_.run([&] { go_on = callbacks_.progress(to_progress(progress_)); });
    if (!go_on) stop_ = true;
  }

 private:
  const SearchCallbacks& callbacks_;
  const SearchProgress& progress_;
  CallbackFailure& failure_;
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

std::unique_ptr<gpu::GpuFilters> start_gpu(const SearchOptions& options) {
  gpu::Settings settings;
  settings.devices = options.gpus;
  settings.demanded = options.device == DeviceUse::kGpu;
  settings.vram = options.vram;
  if (options.cache) {
    settings.open_kernels = [cache = options.cache->impl()->cache] {
      // The driver is up by then: its version bounds the compiler's.
      const int version = driver::open_cuda_library().report.version;
      return gpu::open_kernel_source(version / 1000, {}, cache);
    };
  }
  return std::make_unique<gpu::GpuFilters>(std::move(settings));
}

SearchResults run_search(const Models& models, const Targets& targets, const SearchOptions& options,
                         const SearchCallbacks& callbacks) {
  check_options(options);
  hmmjit::SearchOptions internal = to_options(options);
  std::atomic<bool> stop{false};
  internal.cancelled = [&] {
    return stop.load(std::memory_order_relaxed) ||
           (callbacks.cancellation && callbacks.cancellation->cancelled());
  };
  const auto interrupted = [] { throw Error(ErrorCode::kInterrupted, "the search was cancelled"); };
  if (internal.cancelled()) interrupted();

  std::string device_note = "not wanted";
  std::unique_ptr<gpu::GpuFilters> gpu;
  if (options.device == DeviceUse::kGpu) {
    gpu = start_gpu(options);
  } else if (options.device == DeviceUse::kAuto) {
    const Targets::Impl& t = *targets.impl();
    const auto residues =
        t.path.empty() ? static_cast<double>(t.residues) : residues_of_file(t.path);
    if (device_pays(internal, positions_of(*models.impl()), residues, device_note))
      gpu = start_gpu(options);
  }

  ModelSource source = value(open_models(models.impl()));
  std::optional<Hmm> first = value(source());
  if (!first) throw Error(ErrorCode::kInput, "no model to search with", models.impl()->path);
  const std::unique_ptr<TargetSource> target_source =
      value(open_targets(targets.impl(), *first->alphabet));
  const ModelSource all = [&]() -> Result<std::optional<Hmm>> {
    if (first) return std::exchange(first, std::nullopt);
    return source();
  };
  const std::unique_ptr<FilterBackend> backend =
      gpu != nullptr ? make_device_backend(*gpu) : make_cpu_backend();

  SearchResults out;
  SearchProgress progress;
  CallbackFailure failure;
  Collector sink(callbacks, failure, out.models);
  Ticker ticker(callbacks, progress, failure, stop);
  auto statistics = hmmjit::search(internal, all, *target_source, *backend, sink, &progress);
  ticker.end();
  failure.rethrow();
  if (!statistics) raise(statistics.error());
  ticker.report();
  failure.rethrow();

  const hmmjit::SearchStatistics& s = *statistics;
  SearchStatistics& to = out.statistics;
  to.backend = s.backend;
  to.device = device_note;
  to.threads = s.threads;
  to.models = s.models;
  to.targets = s.targets;
  to.residues = s.residues;
  to.passes = s.passes;
  to.wall_seconds = s.wall_seconds;
  to.read_seconds = s.read_seconds;
  to.setup_seconds = s.setup_seconds;
  to.msv_seconds = s.filters.msv;
  to.bias_seconds = s.filters.bias;
  to.viterbi_seconds = s.filters.viterbi;
  to.scoring_seconds = s.scoring_seconds;
  to.counts = to_counts(s.counters);
  to.hits_reported = s.hits_reported;
  to.domains_reported = s.domains_reported;
  if (gpu != nullptr) {
    const gpu::Statistics g = gpu->statistics();
    to.device = g.reason.empty() ? g.state : g.state + ": " + g.reason;
    to.device_cells = g.cells;
    to.device_launches = g.launches;
  }
  return out;
}

}  // namespace

SearchResults search(const Models& models, const Targets& targets, const SearchOptions& options,
                     const SearchCallbacks& callbacks) {
  return guarded([&] { return run_search(models, targets, options, callbacks); });
}

}  // namespace hmmjit::v0
