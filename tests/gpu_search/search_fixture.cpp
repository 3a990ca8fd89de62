#include "search_fixture.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <thread>

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

gpu::Settings fake_settings(const FakeDriver& driver, int devices,
                            std::shared_ptr<KernelScript> script) {
  gpu::Settings settings;
  settings.devices.clear();
  for (int i = 0; i < devices; ++i) settings.devices.push_back(i);
  settings.segment_residues = 20'000;
  settings.segment_growth = 1;
  settings.wait_for_device = true;
  settings.open_driver = [api = driver.api()] { return driver::Driver::open(api); };
  settings.open_kernels = [script =
                               std::move(script)]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return scripted_kernels(script);
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
