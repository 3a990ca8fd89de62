// Waiting times of a user: all kernels of a library with an empty cache, one kernel, a cached
// kernel. Prints times; fails only beyond limits that no load of the machine explains.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>

#include "compile/kernel_provider.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::compile {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double load() {
  double one = 0;
  getloadavg(&one, 1);
  return one;
}

class StartUp : public testing::Test {
 protected:
  void SetUp() override {
    compiler_ = NvrtcLibrary::locate();
    if (!compiler_) GTEST_SKIP() << compiler_.error().to_string();
  }
  std::unique_ptr<cache::KernelCache> open_cache() const {
    cache::Settings settings;
    settings.directory = folder_.string();
    return cache::KernelCache::open(settings);
  }

  test_support::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  Result<std::shared_ptr<const NvrtcLibrary>> compiler_ = fail(ErrorCode::kInternal, "not set");
};

// Every size class from the shortest to the longest of 349 Pfam models.
constexpr int kShortest = 23, kLongest = 673;

std::set<int> library_classes() {
  std::set<int> classes;
  for (int length = kShortest; length <= kLongest; ++length) {
    classes.insert(plan::class_length(length));
  }
  return classes;
}

// Number of kernels of a library, from plans alone.
TEST_F(StartUp, KernelsOfALibrary) {
  for (const char* name : {"T4", "A100", "H200", "B200", "RTX 5090"}) {
    const auto device = *plan::find_device(name);
    for (int i = 0; i < plan::kStages; ++i) {
      const auto stage = static_cast<plan::Stage>(i);
      std::set<std::string> kernels;
      double computed = 0, real = 0;
      for (int length = kShortest; length <= kLongest; ++length) {
        const auto planned = plan::make_plan(stage, length, 29, device);
        // Rows of the domain stage are in shared memory: too long models run on the CPU.
        if (!planned && stage >= plan::Stage::kParser) continue;
        ASSERT_TRUE(planned) << planned.error().to_string();
        std::string identity(planned->chosen.variant->name);
        for (const auto& [constant, value] : planned->chosen.constants.list()) {
          identity += fmt::format("/{}", value);
        }
        kernels.insert(std::move(identity));
        // Kernels of the domain stage compute the model's own rows; one serves all lengths.
        computed +=
            stage >= plan::Stage::kParser ? length : planned->chosen.expected.covered_length;
        real += length;
      }
      fmt::print("{} {}: {} kernels, {:.1f} % padded cells\n", name, plan::stage_name(stage),
                 kernels.size(), 100 * (computed / real - 1));
      EXPECT_LE(kernels.size(), library_classes().size()) << name << plan::stage_name(stage);
      EXPECT_LT(computed / real - 1, 0.09) << name << plan::stage_name(stage);
    }
  }
}

TEST_F(StartUp, CompilesOfALibrary) {
  constexpr int kThreads = 2;
  const auto device = *plan::find_device("H200");
  const std::set<int> classes = library_classes();
  const char* all = std::getenv("HMMJIT_START_UP");
  std::vector<plan::Stage> stages{plan::Stage::kSsv};
  if (all != nullptr && std::string_view(all) == "all") {
    stages = {plan::Stage::kSsv, plan::Stage::kMsv, plan::Stage::kBias, plan::Stage::kViterbi,
              plan::Stage::kForward};
  }
  for (const plan::Stage stage : stages) {
    for (const bool cold : {true, false}) {
      const auto cache = open_cache();
      double slowest = 0, slowest_wall = 0;
      ProviderSettings settings{.threads = kThreads, .developer = {}, .on_event = {}};
      settings.on_event = [&](const ProviderEvent& event) {
        if (event.kind == ProviderEvent::Kind::kCompiled) {
          slowest = std::max(slowest, event.cpu_seconds);
          slowest_wall = std::max(slowest_wall, event.seconds);
        }
      };
      KernelProvider provider(*render::TemplateLibrary::from_environment(), compiler_, *cache,
                              std::move(settings));
      const auto start = Clock::now();
      const double cpu = process_cpu_seconds();
      std::vector<KernelProvider::Future> futures;
      for (const int length : classes) {
        futures.push_back(provider.request(*plan::make_plan(stage, length, 29, device)));
      }
      for (auto& future : futures) {
        ASSERT_TRUE(future.get()) << future.get().error().to_string();
      }
      const ProviderStatistics statistics = provider.statistics();
      fmt::print(
          "{} {}: {} classes, {} compiled, {:.2f} s on {} threads, {:.2f} CPU s, slowest kernel "
          "{:.2f} CPU s ({:.2f} s), load {:.1f}\n",
          plan::stage_name(stage), cold ? "cold" : "warm", classes.size(), statistics.compiled,
          seconds_since(start), kThreads, process_cpu_seconds() - cpu, slowest, slowest_wall,
          load());
      EXPECT_EQ(statistics.rejected, 0u);
      if (!cold) {
        EXPECT_EQ(statistics.compiled, 0u);
      } else if (stage == plan::Stage::kSsv) {
        // The goal is 15 s on two cores. Core-seconds double on a machine whose cores share their
        // units with other work, so the limit is above that.
        EXPECT_LT(process_cpu_seconds() - cpu, 3 * 2 * 15.0);
      }
    }
  }
}

// `hmmjit plan --emit cubin` as a user runs it: the whole process, except driver and GPU.
TEST_F(StartUp, EmittedCubin) {
  const std::string command = fmt::format(
      "HMMJIT_CACHE_DIR={} {} plan --length 400 --device H200 --stage ssv --emit cubin "
      "-o {}",
      folder_.string(), HMMJIT_PROGRAM, (folder_ / "kernel.cubin").string());
  double cold = 0;
  std::vector<double> warm;
  for (int i = 0; i < 6; ++i) {
    const auto start = Clock::now();
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    (i == 0 ? cold : warm.emplace_back()) = 1e3 * seconds_since(start);
  }
  std::ranges::sort(warm);
  fmt::print("plan --emit cubin: cold {:.0f} ms, warm {:.1f} ms (least of 5), load {:.1f}\n", cold,
             warm.front(), load());
  EXPECT_LT(warm.front(), cold);
}

TEST_F(StartUp, CacheHit) {
  const auto planned = *plan::make_plan(plan::Stage::kSsv, 400, 29, *plan::find_device("H200"));
  {
    const auto cache = open_cache();
    KernelProvider provider(*render::TemplateLibrary::from_environment(), compiler_, *cache);
    ASSERT_TRUE(provider.get(planned));
  }
  std::vector<double> hits, whole;
  constexpr int kRounds = 21;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = Clock::now();
    const auto cache = open_cache();
    KernelProvider provider(*render::TemplateLibrary::from_environment(), compiler_, *cache);
    const auto start = Clock::now();
    const auto kernel = provider.get(planned);
    hits.push_back(1e3 * seconds_since(start));
    whole.push_back(1e3 * seconds_since(begin));
    ASSERT_TRUE(kernel);
    ASSERT_EQ((*kernel)->origin, cache::Layer::kUser);
  }
  std::ranges::sort(hits);
  std::ranges::sort(whole);
  fmt::print(
      "disk hit: median {:.2f} ms ({:.2f} to {:.2f}), with cache and templates opened {:.2f} "
      "ms, load {:.1f}\n",
      hits[kRounds / 2], hits.front(), hits.back(), whole[kRounds / 2], load());
  // The minimum of many runs: the work itself, without other users of the machine.
  EXPECT_LT(hits.front(), 5.0);
}

}  // namespace
}  // namespace hmmjit::compile
