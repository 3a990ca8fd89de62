// Random libraries on the fake driver against the CPU, counters and hits to the bit: lengths dense
// around every edge of a size class, in any order, with kernels that come late or never. The short
// form, without a device, of tests/gpu/random_searches.py.
//
// Seeds are printed with each failure; HMMJIT_TEST_SEED=N makes the changing test repeat that one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>

#include "host_kernels.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using test_support::ModelKind;
using test_support::Random;
using test_support::TargetKind;

// Where kernels of some stage change, by coarse and fine classes and the rows of the domain stage.
constexpr std::array kEdges{32,  48,   64,   96,   128,  192,  256,  384,  512,  704,  768,
                            896, 1024, 1152, 1280, 1408, 1452, 1536, 2048, 2560, 3072, 3584};

// Which kernels need no compile, come late or cannot be had depends on the seed and the kernel
// alone.
struct Shares {
  double cached = 1, failing = 0, milliseconds = 0;
};
std::shared_ptr<KernelScript> random_kernels(std::uint64_t seed, const Shares& shares) {
  const auto share = [seed](const plan::Plan& plan, std::uint64_t purpose) {
    std::uint64_t value = seed * 1000003 + purpose;
    const auto kernel = fake_kernel(plan);
    for (const char c : kernel->name)
      value = value * 1099511628211u + static_cast<unsigned char>(c);
    return Random(value).real();
  };
  auto script = std::make_shared<KernelScript>();
  script->fate = [=](const plan::Plan& plan) {
    if (share(plan, 1) < shares.cached) return KernelScript::kCached;
    // SSV may fail too: then the CPU has the models of that class.
    return share(plan, 3) < shares.failing ? KernelScript::kFails : KernelScript::kCompiled;
  };
  script->milliseconds = [=](const plan::Plan& plan) {
    return 2 * share(plan, 2) * shares.milliseconds;
  };
  return script;
}

// ---- what a seed stands for ---------------------------------------------------------------------

int random_length(Random& random) {
  const double kind = random.real();
  if (kind < 0.2) return random.integer(1025, 1200);
  if (kind < 0.5) return random.integer(1025, 1536);
  if (kind < 0.85) {
    const int edge = kEdges[static_cast<std::size_t>(random.next() % kEdges.size())];
    return edge + random.integer(-2, 2);
  }
  return random.integer(1, 3600);
}

// A part of the model's consensus, from its end more often than not, faded: what is not that good
// at SSV is what Viterbi decides.
std::vector<Residue> fragment(Random& random, const Hmm& hmm) {
  std::vector<Residue> out;
  const auto draw = [&] { return static_cast<Residue>(random.integer(0, hmm.alphabet->K - 1)); };
  for (int n = random.integer(0, 40); n > 0; --n) out.push_back(draw());
  const int back = random.chance(0.6) ? std::min(hmm.M, 250) : hmm.M;
  const int from = random.integer(hmm.M - back + 1, hmm.M);
  const int to = std::min(hmm.M, from + random.integer(20, 150));
  const double kept = 0.2 + 0.4 * random.real(), gaps = 0.1 * random.real();
  for (int k = from; k <= to; ++k) {
    if (random.chance(gaps)) continue;
    if (random.chance(gaps)) out.push_back(draw());
    const auto symbol = static_cast<unsigned char>(hmm.consensus[static_cast<std::size_t>(k - 1)]);
    out.push_back(random.chance(kept) ? hmm.alphabet->digit[symbol] : draw());
  }
  for (int n = random.integer(0, 40); n > 0; --n) out.push_back(draw());
  return out;
}

SearchData random_data(Random& random) {
  SearchData data;
  std::uint64_t positions = 0;
  while (data.models.size() < 3 || (positions < 13'000 && data.models.size() < 14)) {
    constexpr std::array kKinds{ModelKind::kTypical, ModelKind::kTypical, ModelKind::kTypical,
                                ModelKind::kFlat, ModelKind::kDeleteRich};
    const test_support::ModelKind kind = kKinds[random.next() % kKinds.size()];
    const int length = random_length(random);
    data.models.push_back(test_support::random_hmm(random.next(), length, kind));
    Hmm& hmm = data.models.back();
    hmm.name = fmt::format("model{}", data.models.size() - 1);
    // The longer the model, the better its best diagonal by chance: more targets for Viterbi.
    const double longer = std::max(0.0, std::log2(hmm.M / 256.0));
    hmm.calibration.msv_mu -= static_cast<float>(longer);
    positions += static_cast<std::uint64_t>(hmm.M);
  }
  if (random.chance(0.4)) std::ranges::sort(data.models, {}, &Hmm::M);
  if (random.chance(0.2)) std::ranges::sort(data.models, std::ranges::greater(), &Hmm::M);
  for (const Hmm& hmm : data.models) {
    const int copies = hmm.M > 1024 && hmm.M <= 1536 ? 16 : 3;
    for (int i = 0; i < copies; ++i) data.targets.push_back(fragment(random, hmm));
  }
  for (int i = 0; i < 25; ++i) {
    const auto kind = test_support::kAllTargetKinds[i % 6];
    const int length = i == 7 ? 0 : random.integer(1, 120);
    data.targets.push_back(
        test_support::random_target(random.next(), length, kind, data.models.front()));
  }
  for (std::size_t i = data.targets.size(); i > 1; --i)
    std::swap(data.targets[i - 1], data.targets[random.next() % i]);
  return data;
}

struct Case {
  explicit Case(std::uint64_t case_seed) : seed(case_seed) {
    Random random(seed);
    data = random_data(random);
    options.threads = random.integer(1, 4);
    options.block_residues = static_cast<std::size_t>(random.integer(500, 6'000));
    options.task_cells = 400'000;
    options.domain.seed = static_cast<std::uint32_t>(random.integer(1, 1000));
    options.thresholds.target.e_value = options.thresholds.domain.e_value = 1e9;
    const auto some = [&](double low, double high) {
      return low * std::pow(high / low, random.real());
    };
    if (random.chance(0.8))
      options.filters = {some(0.05, 0.9), some(1e-6, 0.02), some(1e-8, 1e-2), random.chance(0.4)};
    shares.cached = std::array{1.0, 0.5, 0.0}[random.next() % 3];
    shares.failing = random.chance(0.3) ? 0.3 : 0;
    shares.milliseconds = random.chance(0.5) ? 10 : 0;
    devices = random.integer(1, 2);
    lanes = random.integer(1, 4);
    segment = static_cast<std::uint64_t>(random.integer(1'000, 40'000));
    growth = static_cast<std::uint64_t>(random.integer(1, 4));
    finer_kernel_seconds = random.chance(0.5) ? 0 : 0.5;
    vram = random.chance(0.2) ? 200'000 : 0;
    wait_for_device = random.chance(0.8);
    searches = random.chance(0.3) ? 2 : 1;
  }
  std::string describe() const {
    std::string lengths;
    for (const Hmm& hmm : data.models) lengths += fmt::format(" {}", hmm.M);
    return fmt::format(
        "seed {}: models of{} positions, {} targets, {} threads, {} devices, cached {}, failing {}",
        seed, lengths, data.targets.size(), options.threads, devices, shares.cached,
        shares.failing);
  }

  bool kernels_from_the_beginning() const {
    return wait_for_device && shares.cached == 1.0 && shares.failing == 0 && vram == 0;
  }

  std::uint64_t seed;
  SearchData data;
  SearchOptions options;
  Shares shares;
  int devices, lanes, searches;
  std::uint64_t segment, growth, vram;
  double finer_kernel_seconds;
  bool wait_for_device;
};

// Where kernels are there from the beginning, a device must have had its share; elsewhere the
// threads may be through before one comes.
struct Totals {
  std::uint64_t pairs = 0, on_device = 0, searches = 0, passed = 0;
  std::uint64_t pairs_with_kernels = 0, on_device_with_kernels = 0;
};

std::string differing_lines(const std::string& wanted, const std::string& got) {
  std::string out;
  std::istringstream cpu(wanted), device(got);
  for (int shown = 0; shown < 4;) {
    std::string a, b;
    const bool more = static_cast<bool>(std::getline(cpu, a));
    if (!(static_cast<bool>(std::getline(device, b)) || more)) break;
    if (a == b) continue;
    ++shown;
    out += fmt::format("CPU:    {}\ndevice: {}\n", a, b);
  }
  return out;
}

void run_case(std::uint64_t seed, Totals& totals) {
  const Case c(seed);
  SCOPED_TRACE(c.describe());
  const SearchOutcome wanted = run_search(c.data, nullptr, c.options);
  ASSERT_EQ(wanted.error, "");

  const plan::DeviceTraits h200 = *plan::find_device("H200");
  FakeDriver driver({h200, h200});
  driver.on_launch = run_on_host;
  gpu::Settings settings = fake_settings(driver, c.devices, random_kernels(c.seed, c.shares));
  settings.segment_residues = c.segment;
  settings.segment_growth = c.growth;
  settings.lanes = c.lanes;
  settings.finer_kernel_seconds = c.finer_kernel_seconds;
  settings.vram = c.vram;
  settings.wait_for_device = c.wait_for_device;
  gpu::GpuFilters gpu(std::move(settings));
  if (c.wait_for_device) wait_until_started(gpu);
  for (int search = 0; search < c.searches; ++search) {
    const std::uint64_t before = gpu.statistics().targets;
    const SearchOutcome got = run_search(c.data, &gpu, c.options);
    const std::uint64_t on_device = gpu.statistics().targets - before;
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(differing_lines(wanted.text, got.text), "");
    totals.pairs += c.data.models.size() * c.data.targets.size();
    totals.on_device += on_device;
    if (c.kernels_from_the_beginning()) {
      totals.pairs_with_kernels += c.data.models.size() * c.data.targets.size();
      totals.on_device_with_kernels += on_device;
    }
    ++totals.searches;
  }
  // A launch that a kernel does not cover fails, and the CPU would make the results right.
  EXPECT_NE(gpu.statistics().state, "failed") << gpu.statistics().reason;
  totals.passed += gpu.statistics().passed;
}

void run_cases(std::uint64_t first, int count) {
  Totals totals;
  for (int i = 0; i < count; ++i) run_case(first + static_cast<std::uint64_t>(i), totals);
  fmt::print("{} searches, {} pairs, {} decided on devices, {} passed there\n", totals.searches,
             totals.pairs, totals.on_device, totals.passed);
  if (totals.pairs_with_kernels > 0) {
    EXPECT_GT(totals.passed, 0u);
    EXPECT_GT(totals.on_device_with_kernels, totals.pairs_with_kernels / 20);
  }
}

class RandomLibrariesFrom : public testing::TestWithParam<int> {};
TEST_P(RandomLibrariesFrom, FixedSeeds) { run_cases(static_cast<std::uint64_t>(GetParam()), 3); }
INSTANTIATE_TEST_SUITE_P(RandomLibraries, RandomLibrariesFrom, testing::Values(1, 4, 7, 10));

TEST(RandomLibraries, AChangingSeed) {
  const char* wanted = std::getenv("HMMJIT_TEST_SEED");
  const std::uint64_t seed = wanted != nullptr ? std::strtoull(wanted, nullptr, 10)
                                               : 1000 + std::random_device{}() % 1'000'000;
  fmt::print("seeds {} to {} (HMMJIT_TEST_SEED repeats them)\n", seed, seed + 3);
  run_cases(seed, 4);
}

}  // namespace
}  // namespace hmmjit::tests
