// Kernels that compute wrong scores are found, and end the search before a wrong result leaves.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <concepts>
#include <mutex>
#include <optional>
#include <type_traits>

#include "common/gate_params.h"
#include "host_kernels.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

namespace dev = hmmjit_device;

class Verification : public testing::Test {
 protected:
  Verification() : driver_({*plan::find_device("H200")}) { driver_.on_launch = run_on_host; }

  // Models of one size class, so that one kernel of each stage serves them all.
  static SearchData data_of(std::uint64_t seed, int models, int shortest, int longest) {
    using namespace test_support;
    SearchData data;
    Random random(seed);
    for (int m = 0; m < models; ++m) {
      data.models.push_back(random_hmm(random, {shortest, longest}, ModelKind::kTypical));
      data.models.back().name = fmt::format("model{}", m);
    }
    for (int t = 0; t < 240; ++t) {
      const Hmm& hmm = data.models[static_cast<std::size_t>(t) % data.models.size()];
      const int length = t % 40 == 17 ? 0 : random.integer(30, 400);
      data.targets.push_back(random_target(random.next(), length,
                                           t % 4 == 0   ? TargetKind::kHomologous
                                           : t % 8 == 3 ? TargetKind::kTandem
                                                        : TargetKind::kBackground,
                                           hmm));
    }
    return data;
  }
  // Every third model has 250 to 256 positions, the others 129 to 160: the stages behind SSV take
  // the same kernels for all.
  static SearchData data_of_two_lengths() {
    SearchData data = data_of(23, 24, 129, 160);
    const SearchData longer = data_of(24, 24, 250, 256);
    for (std::size_t m = 2; m < data.models.size(); m += 3) data.models[m] = longer.models[m];
    for (std::size_t t = 0; t < data.targets.size(); t += 2) data.targets[t] = longer.targets[t];
    return data;
  }
  static const SearchData& data() {
    static const SearchData data = data_of(11, 24, 100, 128);
    return data;
  }
  // A tenth of the targets comes to Forward, so that lists have entries.
  static SearchOptions options(int threads) {
    SearchOptions out = small_blocks(threads);
    out.filters.F1 = 0.2;
    out.filters.F2 = 0.1;
    out.filters.F3 = 0.03;
    return out;
  }
  static std::string expected_of(const SearchData& data) {
    const SearchOutcome outcome = run_search(data, nullptr, options(2));
    EXPECT_EQ(outcome.error, "");
    return outcome.text;
  }
  static const std::string& expected() {
    static const std::string text = expected_of(data());
    return text;
  }

  struct Found {
    SearchOutcome outcome;
    std::vector<std::string> warnings;
    int chains = 0;  // begun before the search ended
    bool wrong = false;
    std::uint64_t delivered = 0;
    gpu::Statistics gpu;
  };
  // Every model a chain of its own: one segment.
  Found run(const SearchData& data, std::function<int(const FakeLaunch&)> on_launch,
            std::optional<int> verify = {}, int threads = 2,
            const std::set<std::string>& missing = {"parser_four_lane"}) {
    std::atomic<int> chains{0};
    driver_.on_launch = [&](const FakeLaunch& launch) {
      if (launch.kernel.starts_with("ssv")) ++chains;
      return on_launch(launch);
    };
    Found found;
    std::mutex mutex;
    SearchOptions options = Verification::options(threads);
    options.verify = verify;
    options.memory = memory_;
    options.domain.reseed = reseed_;
    options.on_warning = [&](const Error& warning) {
      const std::lock_guard lock(mutex);
      found.warnings.push_back(warning.to_string());
    };
    // The kernels of the domain stage are executed in lockstep, which takes its time.
    gpu::Settings settings = fake_settings(driver_, 1, without_kernels(missing));
    settings.segment_residues = std::uint64_t{1} << 30;
    settings.lanes = 1;
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    SearchProgress progress;
    found.outcome = run_search(data, &gpu, options, &progress);
    found.chains = chains;
    found.wrong = progress.wrong_kernel;
    found.delivered = progress.results_delivered;
    found.gpu = gpu.statistics();
    return found;
  }
  // The search has ended after at most `chains` chains, with an error that names the kernel.
  static void expect_found(const std::string& what, const Found& found, int chains) {
    fmt::print("{}: found after {} chains; {}\n", what, found.chains, found.outcome.error);
    EXPECT_LE(found.chains, chains) << what;
    EXPECT_TRUE(found.wrong) << what;
    EXPECT_THAT(found.outcome.error, testing::HasSubstr("GPU and CPU differ")) << what;
    EXPECT_THAT(found.outcome.error, testing::HasSubstr("kernel ")) << what;
  }
  // Enough to find what few targets show; the default depends on the processor time used.
  static constexpr int kMany = 64;

  FakeDriver driver_;
  std::uint64_t memory_ = 0;
  bool reseed_ = true;  // false: as with --seed 0
};

TEST_F(Verification, ChecksByDefaultAndFindsNothing) {
  const Found found = run(data(), run_on_host);
  EXPECT_EQ(found.outcome.text, expected());
  EXPECT_GT(found.outcome.statistics.verified, 0u);
  EXPECT_GT(found.outcome.statistics.verified_chains, 0u);
  EXPECT_FALSE(found.wrong);
  EXPECT_THAT(found.warnings, testing::IsEmpty());
}

TEST_F(Verification, AsManyAsAskedForOrNone) {
  const Found none = run(data(), run_on_host, 0);
  EXPECT_EQ(none.outcome.statistics.verified, 0u);
  EXPECT_EQ(none.outcome.statistics.verified_chains, 0u);
  const Found many = run(data(), run_on_host, 400);
  EXPECT_EQ(many.outcome.text, expected());
  EXPECT_EQ(many.outcome.statistics.verified_chains, data().models.size());
  EXPECT_GT(many.outcome.statistics.verified, 100 * data().models.size());
}

// One generator runs through the whole search: the scores of a target depend on what the same
// thread has sampled before, and a second computation samples other traces.
TEST_F(Verification, ScoresThatDependOnWhatWasSampledBeforeAreNotCompared) {
  using namespace test_support;
  // Only regions of several domains are sampled: models with cheap insertions have most of them.
  SearchData several = data_of(17, 6, 100, 128);
  Random random(18);
  for (Hmm& hmm : several.models) {
    std::string name = std::move(hmm.name);
    hmm = random_hmm(random.next(), hmm.M, ModelKind::kInsertRich);
    hmm.name = std::move(name);
  }
  for (std::size_t t = 0; t < several.targets.size(); t += 4) {
    const Hmm& hmm = several.models[t / 4 % several.models.size()];
    several.targets[t] = random_target(random, {200, 400}, TargetKind::kHomologous, hmm);
  }
  reseed_ = false;
  const Found found = run(several, run_on_host, 400, 2, {});
  const SearchStatistics& s = found.outcome.statistics;
  fmt::print("{} targets parsed, {} checked\n", found.gpu.parsed, s.verified);
  EXPECT_EQ(found.outcome.error, "");
  EXPECT_GT(s.verified, 0u);
  EXPECT_THAT(found.warnings, testing::IsEmpty());
}

TEST_F(Verification, KernelsThatAreWrongAllOverAreFoundAtOnce) {
  const auto lying = [](const std::string& kernel) {
    return [kernel](const FakeLaunch& launch) {
      return launch.kernel == kernel ? run_on_host_wrongly(launch) : run_on_host(launch);
    };
  };
  for (const char* kernel : {"ssv_multi_lane", "msv_multi_lane", "bias_segments",
                             "viterbi_wavefront", "forward_row_scan"})
    expect_found(kernel, run(data(), lying(kernel), kMany), 10);
  // It does what the other Viterbi kernel does not.
  expect_found(
      "viterbi_lane_scan",
      run(data(), lying("viterbi_lane_scan"), kMany, 2, {"parser_four_lane", "viterbi_wavefront"}),
      10);
  const SearchData few = data_of(12, 6, 100, 128);
  expect_found("envelope_four_lane", run(few, lying("envelope_four_lane"), {}, 2, {}), 6);
}

// ---- defects put in on purpose ------------------------------------------------------------------

// A launch of a filter or a gate with other parameters.
template <typename Edit>
int run_edited(const FakeLaunch& launch, const Edit& edit) {
  const auto with = [&]<typename Params>(const Params& given) {
    Params p = given;
    if constexpr (std::invocable<Edit, Params&>) edit(p);
    FakeLaunch edited = launch;
    edited.parameters = &p;
    return run_on_host(edited);
  };
  return with_parameters(launch, with);
}
// The same for launches of kernels that begin like this.
template <typename Edit>
auto edited(std::string_view kernel, Edit edit) {
  return [kernel, edit](const FakeLaunch& launch) {
    return launch.kernel.starts_with(kernel) ? run_edited(launch, edit) : run_on_host(launch);
  };
}

// A kernel made for fewer positions than some of its models have.
auto covering(std::string_view kernel, dev::u32 covered) {
  return edited(
      kernel, [covered](auto& p) requires requires { p.model_length; } {
        p.model_length = std::min(p.model_length, covered);
      });
}

TEST_F(Verification, AKernelThatCoversFewerPositionsThanTheModel) {
  const SearchData longer = data_of_two_lengths();
  constexpr dev::u32 kCovered = 192;
  const auto is_long = [](const Hmm& hmm) { return hmm.M > static_cast<int>(kCovered); };
  const auto first = std::ranges::find_if(longer.models, is_long) - longer.models.begin();
  ASSERT_LT(first, 20);
  ASSERT_GT(std::ranges::count_if(longer.models, is_long), 2);
  for (const char* kernel : {"ssv", "viterbi", "forward"}) {
    const Found found = run(longer, covering(kernel, kCovered), kMany);
    fmt::print("model {} is the first with more positions than the kernel\n", first);
    expect_found(kernel, found, 24);
    EXPECT_THAT(found.outcome.error, testing::HasSubstr(kernel));
  }
}

TEST_F(Verification, OneWrongEmissionOfOneSymbol) {
  // Leucine at the middle position cannot be emitted.
  const auto spoil = []<typename Params>(Params & p) requires requires { p.emissions; }
  {
    using Score = std::remove_cvref_t<decltype(*p.emissions)>;
    constexpr auto kNever = static_cast<Score>(std::is_same_v<Score, float>      ? 0
                                               : std::is_same_v<Score, dev::s16> ? -32768
                                                                                 : -127);
    constexpr std::size_t kSymbol = 9;
    std::size_t stride = 0;
    if constexpr (requires { p.stride; }) {
      stride = p.stride;
    } else {
      stride = p.emission_stride;
    }
    const_cast<Score*>(p.emissions)[kSymbol * stride + p.model_length / 2] = kNever;
  };
  for (const char* kernel : {"ssv", "viterbi", "forward"})
    expect_found(kernel, run(data(), edited(kernel, spoil), kMany), 24);
}

TEST_F(Verification, AListCutAtAPowerOfTwo) {
  static constexpr dev::u32 kMost = 8;
  // The list of survivors.
  const Found found = run(
      data(),
      [](const FakeLaunch& launch) {
        const int code = run_on_host(launch);
        if (launch.kernel.starts_with("ssv") || launch.kernel.starts_with("msv")) {
          dev::Counters& c =
              *static_cast<const dev::ByteFilterParams*>(launch.parameters)->counters;
          c.survivors = std::min(c.survivors, kMost);
        }
        return code;
      },
      kMany);
  expect_found("survivors", found, 6);
  // The list that a gate or a filter reads.
  dev::u32 count = 0;
  const auto cut = [&count](auto& p) requires requires { p.list; }
  {
    if constexpr (requires { p.only_flagged; }) {
      if (p.only_flagged) return;
    }
    count = std::min(*p.list.count, kMost);
    p.list.count = &count;
  };
  for (const char* kernel : {"gate", "viterbi", "forward"})
    expect_found(kernel, run(data(), edited(kernel, cut), kMany), 6);
}

TEST_F(Verification, AGateOffByOne) {
  const auto raise_classes = [](dev::ByteFilterParams& p) {
    dev::u32 classes = 0;
    for (dev::u32 i = 0; i < p.database.targets; ++i)
      classes = std::max(classes, p.database.length_class[i] + 1);
    for (dev::u32 i = 0; i < classes; ++i) ++const_cast<dev::LengthClass*>(p.classes)[i].ssv_gate;
  };
  expect_found("MSV, one unit of a byte", run(data(), edited("ssv", raise_classes), kMany), 12);
  for (const auto gate : {&dev::GateParams::viterbi_gate, &dev::GateParams::forward_gate}) {
    const auto raise = [gate](dev::GateParams& p) {
      (p.*gate).rejects += 1;
      (p.*gate).passes += 1;
    };
    expect_found("a gate, one bit", run(data(), edited("gate", raise), kMany), 24);
  }
}

// ---- where the search ends ----------------------------------------------------------------------

TEST_F(Verification, AKernelFoundWrongLateEndsTheSearchAfterItsFirstResults) {
  SearchData sorted = data_of_two_lengths();
  std::ranges::stable_sort(sorted.models, {}, &Hmm::M);
  for (const int threads : {1, 4}) {
    const Found found = run(sorted, covering("forward", 192), kMany, threads);
    expect_found("late", found, 24);
    EXPECT_GT(found.delivered, 0u);
    EXPECT_TRUE(expected_of(sorted).starts_with(found.outcome.text));
  }
}

TEST_F(Verification, StreamedTargets) {
  memory_ = 120'000;
  expect_found("streamed",
               run(
                   data(),
                   [](const FakeLaunch& launch) {
                     return launch.kernel.starts_with("forward") ? run_on_host_wrongly(launch)
                                                                 : run_on_host(launch);
                   },
                   kMany),
               24);
}

}  // namespace
}  // namespace hmmjit::tests
