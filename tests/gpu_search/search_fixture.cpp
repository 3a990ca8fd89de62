#include "search_fixture.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "host_kernels.hpp"
#include "plan/device_traits.hpp"
#include "search/kept_targets.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

class VectorSource final : public TargetSource {
 public:
  explicit VectorSource(const std::vector<std::vector<Residue>>& targets) : targets_(targets) {}
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    if (next_ == targets_.size()) return false;
    block.set_first_index(next_);
    while (next_ < targets_.size() && block.residue_count() < residues) {
      block.begin_target(fmt::format("target{}", next_), "", "of a test");
      block.append(targets_[next_++]);
      block.end_target();
    }
    return true;
  }
  Status rewind() override {
    next_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  const std::vector<std::vector<Residue>>& targets_;
  std::size_t next_ = 0;
};

// Kernels whose image is anything: the fake driver runs them by name.
class InstantKernels final : public gpu::InstantKernelSource {
 public:
  InstantKernels(std::set<std::string> missing, bool cached,
                 compile::ImageKind kind = compile::ImageKind::kCubin)
      : missing_(std::move(missing)), cached_(cached), kind_(kind) {}
  compile::KernelPtr find(const plan::Plan& plan) override {
    return cached_ ? make(plan).value_or(nullptr) : nullptr;
  }
  Result<compile::KernelPtr> refused(const plan::Plan& plan, const compile::KernelPtr&,
                                     const std::string& reason) override {
    if (remade_.exchange(true)) return fail(ErrorCode::kCompile, "refused again: " + reason);
    return make(plan);
  }

 private:
  Result<compile::KernelPtr> make(const plan::Plan& plan) override {
    if (missing_.contains(std::string(tested(plan).variant->entry_name))) {
      return fail(ErrorCode::kCompile, "no compiler here");
    }
    auto kernel = std::make_shared<compile::Kernel>();
    kernel->name = fmt::format("{}.{} for {}", plan::stage_name(plan.stage),
                               tested(plan).variant->name, plan.class_length);
    kernel->candidate = tested(plan);
    kernel->image.entry_name = tested(plan).variant->entry_name;
    kernel->image.bytes = image_for(tested(plan));
    kernel->image.kind = kind_;
    return kernel;
  }
  std::set<std::string> missing_;
  bool cached_;
  compile::ImageKind kind_;
  std::atomic<bool> remade_ = false;  // several threads load kernels
};

// A cache without a compiler: its kernels, and the requests that it cannot serve.
class WarmedKernels final : public gpu::InstantKernelSource {
 public:
  WarmedKernels(const SearchData& data, std::vector<std::string>* missed)
      : missed_(missed), instant_({}, true) {
    for (const Hmm& hmm : data.models) {
      for (const plan::Plan& plan :
           gpu::search_plans(hmm.M, hmm.alphabet->Kp, *plan::find_device("H200"), nullptr)) {
        there_.insert(identity(plan));
      }
    }
  }
  compile::KernelPtr find(const plan::Plan& plan) override {
    return there_.contains(identity(plan)) ? make(plan).value_or(nullptr) : nullptr;
  }

 private:
  Result<compile::KernelPtr> make(const plan::Plan& plan) override {
    if (there_.contains(identity(plan))) return instant_.get(plan);
    missed_->push_back(identity(plan));
    return fail(ErrorCode::kCompile, "strict");
  }
  static std::string identity(const plan::Plan& plan) {
    std::string out(plan::stage_name(plan.stage));
    out += tested(plan).variant->name;
    for (const auto& [name, value] : tested(plan).constants.list())
      out += fmt::format(" {}={}", name, value);
    return out;
  }
  std::set<std::string> there_;
  std::vector<std::string>* missed_;
  InstantKernels instant_;
};

gpu::Settings settings_for(const FakeDriver& driver, int devices,
                           const std::set<std::string>& missing, bool cached = true) {
  gpu::Settings settings;
  settings.devices.clear();
  for (int i = 0; i < devices; ++i) settings.devices.push_back(i);
  settings.segment_residues = 20'000;
  settings.segment_growth = 1;
  settings.wait_for_device = true;
  settings.open_driver = [api = driver.api()] { return driver::Driver::open(api); };
  settings.open_kernels = [missing, cached]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<InstantKernels>(missing, cached);
  };
  return settings;
}

}  // namespace

Status TextSink::receive(const ModelResult& result) {
  const HitList& list = result.hits;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "model {} {} M {} Z {} domZ {} passed {} {} {} {} of {} {}\n", result.index,
                 result.model.name, result.model.M, list.Z, list.domZ, list.counters.msv,
                 list.counters.bias, list.counters.viterbi, list.counters.forward,
                 list.counters.targets, list.counters.residues);
  for (const Hit& hit : list.hits) {
    fmt::format_to(out, " {} {} L {} {:a} {:a} {:a} {}{}\n", hit.index, hit.name, hit.length,
                   hit.score.bits, hit.score.pre_bits, hit.score.log_p, hit.flags.reported,
                   hit.flags.included);
    for (const domain::Domain& d : hit.score.domains) {
      fmt::format_to(out, "  {}-{} {}-{} {}-{} {:a} {:a} {:a} {}\n", d.ienv, d.jenv, d.iali, d.jali,
                     d.hmm_from, d.hmm_to, d.bits, d.accuracy_sum, d.bias_nats, d.alignment.pp);
    }
  }
  return {};
}

SearchData make_search_data(std::uint64_t seed, int models, int targets, int longest_model) {
  using namespace test_support;
  SearchData data;
  Random random(seed);
  for (int m = 0; m < models; ++m) {
    const ModelKind kind = m % 4 == 3 ? ModelKind::kFlat : ModelKind::kTypical;
    data.models.push_back(random_hmm(random, {1, longest_model}, kind));
    data.models.back().name = fmt::format("model{}", m);
  }
  for (int t = 0; t < targets; ++t) {
    const TargetKind kind = t % 9 == 0   ? kAllTargetKinds[static_cast<std::size_t>(t / 9 % 6)]
                            : t % 5 == 0 ? TargetKind::kHomologous
                                         : TargetKind::kBackground;
    const int length = t % 50 == 17  ? 0
                       : t % 97 == 5 ? random.integer(2500, 5000)
                                     : random.integer(1, 400);
    const Hmm& hmm = data.models[random.next() % data.models.size()];
    data.targets.push_back(random_target(random.next(), length, kind, hmm));
  }
  return data;
}

SearchOutcome run_search(const SearchData& data, gpu::GpuFilters* device,
                         const SearchOptions& options, SearchProgress* progress) {
  VectorSource targets(data.targets);
  return run_search(data, device, options, targets, progress);
}

namespace {

SearchOutcome outcome_of(
    const SearchData& data,
    const std::function<Result<SearchStatistics>(const ModelSource&, ResultSink&)>& search) {
  TextSink sink;
  std::size_t next = 0;
  const ModelSource models = [&]() -> Result<std::optional<Hmm>> {
    if (next == data.models.size()) return std::nullopt;
    return data.models[next++];
  };
  SearchOutcome out;
  auto statistics = search(models, sink);
  out.text = std::move(sink.text);
  if (statistics) {
    out.statistics = *statistics;
  } else {
    out.error = statistics.error().to_string();
  }
  return out;
}

}  // namespace

SearchOutcome run_search(const SearchData& data, gpu::GpuFilters* device,
                         const SearchOptions& options, TargetSource& targets,
                         SearchProgress* progress) {
  return outcome_of(data, [&](const ModelSource& models, ResultSink& sink) {
    return search(options, models, targets, device, sink, progress);
  });
}

SearchOutcome run_search(const SearchData& data, Session& session, const SearchOptions& options) {
  VectorSource targets(data.targets);
  SearchProgress progress;
  return outcome_of(data, [&](const ModelSource& models, ResultSink& sink) {
    return session.search(options, models, targets, sink, progress);
  });
}

SearchOutcome run_search(const SearchData& data, Session& session, const SearchOptions& options,
                         const ResidentTargets& targets) {
  const std::unique_ptr<TargetSource> source = targets.open();
  SearchProgress progress;
  return outcome_of(data, [&](const ModelSource& models, ResultSink& sink) {
    return session.search(options, models, *source, sink, progress);
  });
}

gpu::Settings fake_settings(const FakeDriver& driver, int devices) {
  return settings_for(driver, devices, {});
}
gpu::Settings settings_without_cache(const FakeDriver& driver) {
  return settings_for(driver, 1, {}, false);
}
gpu::Settings settings_with_ptx(const FakeDriver& driver) {
  gpu::Settings settings = settings_for(driver, 1, {});
  settings.open_kernels = []() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<InstantKernels>(std::set<std::string>{}, true,
                                            compile::ImageKind::kPtx);
  };
  return settings;
}
gpu::Settings settings_without_kernels(const FakeDriver& driver,
                                       const std::set<std::string>& missing) {
  return settings_for(driver, 1, missing);
}

gpu::Settings settings_after_warming(const FakeDriver& driver, const SearchData& data,
                                     std::vector<std::string>* missed) {
  gpu::Settings settings = settings_for(driver, 1, {});
  settings.open_kernels = [&data, missed]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<WarmedKernels>(data, missed);
  };
  return settings;
}

SearchOptions small_blocks(int threads) {
  SearchOptions options;
  options.threads = threads;
  options.block_residues = 6'000;
  options.task_cells = 200'000;
  return options;
}

std::unique_ptr<TargetSource> kept_targets(const SearchData& data) {
  return keep_targets(std::make_unique<VectorSource>(data.targets), std::uint64_t{1} << 30);
}

std::shared_ptr<const ResidentTargets> resident_targets(const SearchData& data) {
  VectorSource targets(data.targets);
  return *load_targets(targets, 0);
}

void wait_until_started(const gpu::GpuFilters& gpu) {
  while (gpu.statistics().state == "starting")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace hmmjit::tests
