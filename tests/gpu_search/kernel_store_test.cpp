// Which kernels a search asks for, in what order, and what a chain waits for.
#include "gpu/kernel_store.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "fake_driver/fake_driver.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/device_targets.hpp"
#include "gpu_search/pairs_fixture.hpp"
#include "host_kernels.hpp"
#include "model/profile.hpp"
#include "plan/device_traits.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using gpu::KernelStore;
using gpu::Link;

class KernelStoreTest : public testing::Test {
 protected:
  KernelStoreTest() { script_.fate = always(KernelScript::kLate); }
  void open() { kernels_.open(scripted_kernels(script_), *plan::find_device("H200")); }
  const gpu::KernelClass& planned(const SearchModel& model) {
    return tests::planned(kernels_, model);
  }
  const gpu::KernelClass& opened() {
    open();
    return planned(model_of(100));
  }
  // Ends the compiles of a stage; of Viterbi those of one variant.
  void finish(plan::Stage stage, bool well, std::string_view variant = {}) {
    EXPECT_GT(script_.finish(well,
                             [&](const plan::Plan& plan) {
                               return plan.stage == stage &&
                                      (variant.empty() || tested(plan).variant->name == variant);
                             }),
              0u);
  }

  KernelScript script_;
  KernelStore kernels_{{}};
};

TEST_F(KernelStoreTest, AChainWaitsForTheKernelsThatDecideMost) {
  const SearchModel model = model_of(100);
  EXPECT_EQ(kernels_.of(model), nullptr);  // nobody plans yet
  open();
  const gpu::KernelClass& slots = planned(model);
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kPending);
  finish(plan::Stage::kSsv, true);
  finish(plan::Stage::kBias, true);
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kPending);
  finish(plan::Stage::kGate, true);
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kPending);
  finish(plan::Stage::kViterbi, true, "lane_scan");
  // The other filters' kernels are waited for, but not for long.
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kPending);
  const double until = kernels_.state(slots).until;
  EXPECT_LT(until, Trace::now() + 1.5);
  while (Trace::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kReady);
  EXPECT_TRUE(of_link(slots, Link::kParser)->expected());
  finish(plan::Stage::kParser, true);
  EXPECT_TRUE(of_link(slots, Link::kParser)->expected());
  EXPECT_TRUE(of_link(slots, Link::kEnvelope)->expected());
  EXPECT_EQ(kernels_.reason(), "");
  finish(plan::Stage::kEnvelope, false);
  EXPECT_FALSE(of_link(slots, Link::kEnvelope)->expected());
}

TEST_F(KernelStoreTest, AKernelThatFailsIsNotWaitedFor) {
  const gpu::KernelClass& slots = opened();
  finish(plan::Stage::kSsv, true);
  for (const plan::Stage stage : {plan::Stage::kMsv, plan::Stage::kForward, plan::Stage::kBias,
                                  plan::Stage::kGate, plan::Stage::kViterbi}) {
    EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kPending);
    finish(stage, false);
  }
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kReady);
  EXPECT_NE(kernels_.reason(), "");
}

TEST_F(KernelStoreTest, NothingGoesWithoutSsv) {
  const gpu::KernelClass& slots = opened();
  finish(plan::Stage::kSsv, false);
  EXPECT_EQ(kernels_.state(slots).kind, gpu::ChainState::kRefused);
}

// The cost of a class is the sum over its chains, and the finer kernel is requested once.
TEST_F(KernelStoreTest, AFinerKernelIsAskedForOnceItsChainsHaveTakenLongEnough) {
  open();
  const gpu::KernelClass& slots = planned(model_of(90));
  std::set<int> lengths;
  const auto asked = [&] {
    const std::lock_guard lock(script_.mutex);
    std::size_t count = 0;
    for (const auto& late : script_.late) {
      if (late.plan.stage != plan::Stage::kSsv) continue;
      lengths.insert(late.plan.class_length);
      ++count;
    }
    return count;
  };
  EXPECT_EQ(asked(), 1u);
  const double enough = KernelStore::Settings{}.finer_kernel_seconds;
  kernels_.ssv_took(slots, 0.6 * enough);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(asked(), 1u);
  kernels_.ssv_took(slots, 0.6 * enough);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (asked() == 1 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kernels_.ssv_took(slots, enough);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(asked(), 2u);
  EXPECT_EQ(lengths, (std::set{96, 128}));
}

TEST_F(KernelStoreTest, UsualLengthsAndDecidingKernelsAreMostUrgent) {
  const std::vector<SearchModel> models{model_of(40), model_of(100), model_of(200), model_of(900)};
  for (const SearchModel& model : models) (void)kernels_.of(model);
  open();
  for (const SearchModel& model : models) (void)planned(model);
  const std::lock_guard lock(script_.mutex);
  std::map<std::pair<std::string, int>, int> priority;  // by kernel and planned length
  for (const KernelScript::Late& a : script_.late) {
    const auto [at, made] = priority.emplace(
        std::pair(std::string(tested(a.plan).variant->entry_name), a.plan.model_length),
        a.priority);
    EXPECT_TRUE(made) << "asked for twice: " << at->first.first;
  }
  // Length 0: whatever the kernel was planned for.
  const auto of = [&](const char* start, int length) {
    for (const auto& [key, value] : priority) {
      if (key.first.starts_with(start) && (length == 0 || key.second == length)) return value;
    }
    ADD_FAILURE() << start << ' ' << length;
    return -1;
  };
  EXPECT_GT(of("ssv", 256), of("bias", 1));
  EXPECT_EQ(of("bias", 1), of("gate", 1));
  EXPECT_GT(of("gate", 1), of("viterbi_lane_scan", 256));
  // One of each for models of all lengths, and ten times as long in the making.
  EXPECT_GT(of("viterbi_lane_scan", 256), of("envelope", 0));
  EXPECT_GT(of("envelope", 0), of("ensemble", 0));
  EXPECT_GT(of("ensemble", 0), of("parser", 0));
  EXPECT_GT(of("parser", 0), of("ssv", 128));
  EXPECT_GT(of("viterbi_lane_scan", 128), of("ssv", 64));
  EXPECT_GT(of("viterbi_lane_scan", 64), of("ssv", 1024));
  EXPECT_GT(of("viterbi_lane_scan", 1024), of("forward", 256));
  EXPECT_GT(of("forward", 1024), of("msv", 256));
  EXPECT_GT(of("msv", 256), of("viterbi_wavefront", 256));
}

// While one thread plans, the others sleep until the time for the first loads is over.
TEST_F(KernelStoreTest, ThreadsWithoutWorkSleep) {
  FakeDriver fake({*plan::find_device("H200")});
  const auto driver = driver::Driver::open(fake.api());
  KernelStore kernels({});
  (void)kernels.of(model_of(100));
  const std::lock_guard lock(script_.mutex);  // the planner's first request waits for it
  kernels.open(scripted_kernels(script_), *plan::find_device("H200"));
  const std::clock_t before = std::clock();  // of the process
  kernels.load_on(driver, {*driver->device(0)});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::clock_t used = std::clock() - before;
  EXPECT_TRUE(kernels.has_pending_loads());
  EXPECT_LT(static_cast<double>(used) / CLOCKS_PER_SEC, 0.03);
}

// Models around every length at which a class, or what a kernel can take, ends; in many orders,
// since the first model of a class has its kernels made for all of it.
TEST(KernelStore, EveryKernelCoversItsModelWhicheverCameFirst) {
  std::vector<int> lengths{1, 2, 7, 31, 33, 3585, 4096, 4100, 9000};
  for (const int edge : {64, 128, 256, 512, 704, 896, 1024, 1088, 1152, 1216, 1280, 1344, 1408,
                         1536, 2048, 2560, 3072, 3584})
    lengths.insert(lengths.end(), {edge - 1, edge, edge + 1});
  std::vector<SearchModel> models;
  for (const int M : lengths) models.push_back(model_of(M));
  test_support::Random random(15);
  for (const char* name : {"H200", "T4", "B200"}) {
    const auto traits = plan::find_device(name);
    ASSERT_TRUE(traits) << name;
    FakeDriver fake({*traits});
    const auto driver = driver::Driver::open(fake.api());
    const driver::DevicePtr device = *driver->device(0);
    for (int order = 0; order < 6; ++order) {
      std::vector<std::size_t> at(models.size());
      std::iota(at.begin(), at.end(), std::size_t{0});
      if (order == 1) std::ranges::reverse(at);
      for (std::size_t i = at.size() - 1; order > 1 && i > 0; --i)
        std::swap(at[i], at[random.next() % (i + 1)]);
      KernelStore kernels({});
      KernelScript script;
      script.fate = [order](const plan::Plan& plan) {
        // Half-warm caches: of SSV those of powers of two, or those of all other lengths.
        const bool coarse = (plan.class_length & (plan.class_length - 1)) == 0;
        const bool cached = order % 4 == 0 || (order % 4 > 1 && coarse == (order == 2));
        return cached ? KernelScript::kCached : KernelScript::kCompiled;
      };
      kernels.open(scripted_kernels(script), *traits);
      kernels.load_on(driver, {device});
      for (const std::size_t m : at) {
        const SearchModel& model = models[m];
        const gpu::ModelExtent extent = gpu::extent_of(model);
        // One after the other: the order of planning is this one.
        const auto ready = kernels.ready(*device, planned(kernels, model), model);
        ASSERT_TRUE(ready) << ready.error().to_string();
        for (std::size_t link = 0; link < gpu::kLinks; ++link) {
          const gpu::ReadyKernel& kernel = (*ready)[link];
          const bool planned = std::ranges::any_of(
              gpu::link_lengths(static_cast<Link>(link), plan::class_length(extent.positions),
                                extent.alphabet_codes, *traits),
              [&](int length) {
                return gpu::link_plan(static_cast<Link>(link), length, extent.alphabet_codes,
                                      *traits, nullptr)
                    .has_value();
              });
          // The finer SSV kernel is requested only if it needs no compile.
          if (static_cast<Link>(link) != Link::kFineSsv || order % 4 == 0) {
            EXPECT_EQ(static_cast<bool>(kernel), planned)
                << name << " order " << order << " M " << extent.positions << " link " << link;
          }
          if (kernel) {
            EXPECT_GE(kernel.extent().positions, extent.positions)
                << name << " order " << order << ' ' << kernel.name();
          }
        }
      }
      EXPECT_EQ(kernels.reason(), "");
    }
  }
}

// A later chain gets it.
TEST(KernelStore, NoKernelIsRefusedForALackOfDeviceMemory) {
  FakeDriver fake({*plan::find_device("H200")});
  fake.fail_call("kernel_attribute", driver::code::kOutOfMemory, 1, true);
  const auto driver = driver::Driver::open(fake.api());
  const driver::DevicePtr device = *driver->device(0);
  KernelStore kernels({});
  KernelScript script;
  kernels.open(scripted_kernels(script), device->traits());
  kernels.load_on(driver, {device});
  const gpu::KernelClass& slots = planned(kernels, model_of(100));
  EXPECT_EQ(kernels.get(Link::kSsv, slots, *device).error().code, ErrorCode::kResources);
  const auto lacking = kernels.get(Link::kViterbi, slots, *device);
  EXPECT_TRUE(lacking && !*lacking);
  fake.fail_call("kernel_attribute", 0);
  const auto loaded = kernels.get(Link::kViterbi, slots, *device);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_TRUE(*loaded);
}

// Where a model's own length has a kernel, one of the lengths that it is asked for has one. Kernels
// of the domain stage are shared, but not by models that could have more targets in a warp.
TEST(ChainPlans, AModelWithAKernelOfItsOwnLengthHasOneToAskFor) {
  constexpr int kCodes = 29;
  for (const char* name : {"H200", "T4", "B200", "RTX 4090"}) {
    const auto traits = plan::find_device(name);
    ASSERT_TRUE(traits) << name;
    for (std::size_t i = 0; i < gpu::kLinks; ++i) {
      const auto link = static_cast<Link>(i);
      const auto plan_of = [&](int length) {
        return gpu::link_plan(link, length, kCodes, *traits, nullptr);
      };
      std::set<int> shared;
      for (int M = 40; M <= 5000; M = M * 9 / 8) {
        const int own = plan::class_length(M);
        const auto alone = plan_of(own);
        if (!alone) continue;
        const std::vector<int> lengths = gpu::link_lengths(link, own, kCodes, *traits);
        EXPECT_TRUE(lengths.back() == own || lengths == std::vector{1}) << "link " << i;
        EXPECT_TRUE(
            std::ranges::any_of(lengths, [&](int length) { return plan_of(length).has_value(); }))
            << name << " M " << M << " link " << i;
        if (gpu::is_filter(link)) continue;
        shared.insert(lengths.front());
        const auto first = plan_of(lengths.front());
        ASSERT_TRUE(first) << name << " M " << M << " link " << i;
        EXPECT_EQ(first->chosen.constants, alone->chosen.constants);
        EXPECT_GE(first->chosen.expected.covered_length, own);
      }
      // Targets in a warp: eight, four, two, one; and runs of stripes.
      if (!gpu::is_filter(link)) {
        EXPECT_LE(shared.size(), link == Link::kEnsemble ? 1u : 13u) << name << " link " << i;
      }
    }
  }
}

// Pieces of targets are cut for the length of the model: those of a shorter one overlap too little.
TEST(DeviceTargets, EachModelLengthHasItsOwnPieces) {
  FakeDriver fake({*plan::find_device("H200")});
  const auto driver = driver::Driver::open(fake.api());
  const driver::DevicePtr device = *driver->device(0);
  const auto block = block_of({std::vector<Residue>(40'000, Residue{3}), {1, 2, 3}}, 1);
  const std::vector<gpu::BlockRef> blocks{{1, block}};
  auto uploader = gpu::Uploader::create(device);
  ASSERT_TRUE(uploader);
  const auto targets = gpu::DeviceTargets::create(
      device, std::make_shared<gpu::PackedSegment>(gpu::pack_segment(blocks)), *uploader);
  ASSERT_TRUE(targets);
  const auto pieces = [&](int length, bool whole) { return *(*targets)->work(length, whole); };
  const auto* const shorter = pieces(100, false);
  const auto* const longer = pieces(2000, false);
  const auto* const whole = pieces(100, true);
  EXPECT_EQ(whole->count, 2u);
  EXPECT_GT(longer->count, whole->count);
  EXPECT_GT(shorter->count, longer->count);
  EXPECT_EQ(pieces(100, false), shorter);
  EXPECT_EQ(pieces(2000, false), longer);
  EXPECT_EQ(pieces(2000, true), whole);
}

TEST(ReadyKernel, RefusesAModelThatItDoesNotCover) {
  FakeDriver fake({*plan::find_device("H200")});
  int launches = 0;
  fake.on_launch = [&](const FakeLaunch&) { return ++launches, 0; };
  const auto driver = driver::Driver::open(fake.api());
  const driver::DevicePtr device = *driver->device(0);
  const auto stream = *driver::Stream::create(device);
  const plan::Plan plan = *plan::make_plan(plan::Stage::kViterbi, 1030, 29, device->traits());
  KernelScript script;
  const auto source = scripted_kernels(script);
  const gpu::ReadyKernel ready =
      *gpu::KernelLoader(driver).load(plan, *source->get(plan), *device, *source);
  const int most = ready.extent().positions;
  EXPECT_GE(most, 1030);
  EXPECT_LT(most, 1536);
  const int parameters = 0;
  EXPECT_TRUE(ready.launch(stream, *device, {most, 29}, &parameters));
  EXPECT_EQ(launches, 1);
  for (const gpu::ModelExtent& model :
       {gpu::ModelExtent{most + 1, 29}, gpu::ModelExtent{100, 18}}) {
    const Status refused = ready.launch(stream, *device, model, &parameters);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCompile);
    EXPECT_NE(refused.error().to_string().find(std::to_string(model.positions)), std::string::npos);
  }
  EXPECT_EQ(launches, 1);
}

}  // namespace
}  // namespace hmmjit::tests
