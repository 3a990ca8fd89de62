// Measurements on a fake device whose launches compute the kernels' results.
#include "bench/bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "bench/self_check.hpp"
#include "gpu/device_targets.hpp"
#include "gpu_search/host_kernels.hpp"
#include "gpu_search/search_fixture.hpp"

namespace hmmjit::tests {
namespace {

using bench::Bench;
using bench::Measurement;
using plan::Stage;

constexpr std::array kStages{Stage::kSsv, Stage::kMsv, Stage::kBias, Stage::kViterbi,
                             Stage::kForward};

class BenchTest : public testing::Test {
 protected:
  BenchTest() : driver_({*plan::find_device("H200")}) {
    driver_.on_launch = run_on_host;
    api_ = driver::Driver::open(driver_.api());
  }

  static const SearchData& data() {
    static const SearchData data = make_search_data(5, 3, 120);
    return data;
  }
  std::unique_ptr<Bench> open(bench::Settings settings, const std::set<std::string>& missing = {}) {
    kernels_ = scripted_kernels(without_kernels(missing));
    settings.threads = 2;
    settings.repeats = 1;
    auto bench = Bench::create(api_, 0, *kernels_, data().targets, std::move(settings));
    EXPECT_TRUE(bench) << bench.error().to_string();
    return std::move(*bench);
  }
  static std::shared_ptr<const SearchModel> model(std::size_t i) {
    return make_search_model(data().models[i]);
  }
  static plan::Plan plan_of(Stage stage, const SearchModel& m, const std::string& variant = {}) {
    plan::PlanOptions options;
    options.variant = variant;
    return *plan::make_plan(stage, m.hmm.M, m.bytes.Kp, *plan::find_device("H200"), options);
  }

  FakeDriver driver_;
  std::shared_ptr<driver::Driver> api_;
  std::unique_ptr<gpu::KernelSource> kernels_;
};

TEST_F(BenchTest, EveryStageIsComparedWithTheCpu) {
  const auto bench = open({.residues = 100'000});
  EXPECT_GT(bench->targets().copies(), 1);
  EXPECT_GE(bench->targets().residues(), 100'000u);
  for (std::size_t i = 0; i < data().models.size(); ++i) {
    const auto m = model(i);
    bench->use_model(m);
    for (const Stage stage : kStages) {
      const plan::Plan plan = plan_of(stage, *m);
      const auto measured = bench->measure(plan, plan.chosen);
      ASSERT_TRUE(measured) << measured.error().to_string();
      EXPECT_EQ(measured->refused, "");
      EXPECT_EQ(measured->wrong, 0u) << plan::stage_name(stage) << ": " << measured->first_wrong;
      EXPECT_EQ(measured->targets, bench->targets().size());
      EXPECT_EQ(measured->launches, 1);
      const double cells = static_cast<double>(measured->residues) * m->hmm.M;
      EXPECT_NEAR(measured->gcups, cells / 1e-3 / 1e9, 1e-6 * measured->gcups);
      if (stage == Stage::kBias || stage == Stage::kForward) {
        EXPECT_LT(measured->of_guard, 1);
      }
    }
  }
}

// Some short random targets have the least score that passes.
TEST_F(BenchTest, TargetsAtTheGateAreComparedToo) {
  bench::Sequences sequences(4000);
  std::minstd_rand random(7);
  for (auto& residues : sequences)
    for (int i = 0; i < 40; ++i) residues.push_back(static_cast<Residue>(random() / 8 % 20));
  kernels_ = scripted_kernels(std::make_shared<KernelScript>());
  const auto bench = Bench::create(api_, 0, *kernels_, sequences, {.repeats = 1, .threads = 1});
  ASSERT_TRUE(bench) << bench.error().to_string();
  const auto m = model(0);
  (*bench)->use_model(m);
  for (const Stage stage : {Stage::kSsv, Stage::kMsv}) {
    const plan::Plan plan = plan_of(stage, *m);
    const auto measured = (*bench)->measure(plan, plan.chosen);
    ASSERT_TRUE(measured) << measured.error().to_string();
    EXPECT_EQ(measured->wrong, 0u) << measured->first_wrong;
  }
}

TEST_F(BenchTest, WrongAnswersAreCountedAndTheFirstIsTold) {
  const auto bench = open({});
  const auto m = model(1);
  bench->use_model(m);
  for (const Stage stage : kStages) {
    const plan::Plan plan = plan_of(stage, *m);
    for (const bool writes : {true, false}) {
      driver_.on_launch = [writes](const FakeLaunch& launch) {
        return writes ? run_on_host_wrongly(launch) : 0;
      };
      const auto measured = bench->measure(plan, plan.chosen);
      ASSERT_TRUE(measured) << measured.error().to_string();
      EXPECT_GE(measured->wrong, writes ? 1 : measured->targets / 2) << plan::stage_name(stage);
      EXPECT_THAT(measured->first_wrong, testing::HasSubstr("instead of"));
      EXPECT_FALSE(measured->exact());
    }
  }
}

TEST_F(BenchTest, SlowDesignsAreMeasuredOnASample) {
  const auto bench = open({.residues = 3'000'000, .seconds = 1e-5});
  const auto m = model(0);
  bench->use_model(m);
  const plan::Plan plan = plan_of(Stage::kMsv, *m, "thread_speculative");
  const auto measured = bench->measure(plan, plan.chosen);
  ASSERT_TRUE(measured) << measured.error().to_string();
  EXPECT_TRUE(measured->sample);
  EXPECT_LT(measured->residues, bench->targets().residues());
  EXPECT_EQ(measured->wrong, 0u) << measured->first_wrong;
}

TEST_F(BenchTest, AKernelThatCannotBeHadIsReported) {
  const auto bench = open({}, {"msv_multi_lane"});
  const auto m = model(0);
  bench->use_model(m);
  const plan::Plan plan = plan_of(Stage::kMsv, *m);
  const auto measured = bench->measure(plan, plan.chosen);
  ASSERT_TRUE(measured);
  EXPECT_THAT(measured->refused, testing::HasSubstr("no compiler here"));
  EXPECT_FALSE(measured->exact());
}

// As in a search: code that the driver made of PTX has to keep the promises of the catalogue, and
// an image that it refuses is made once more.
TEST_F(BenchTest, WhatASearchWouldNotLaunchIsNotMeasured) {
  const auto script = std::make_shared<KernelScript>();
  script->kind = compile::ImageKind::kPtx;
  kernels_ = scripted_kernels(script);
  const auto bench =
      Bench::create(api_, 0, *kernels_, data().targets, {.repeats = 1, .threads = 2});
  ASSERT_TRUE(bench) << bench.error().to_string();
  const auto m = model(0);
  (*bench)->use_model(m);
  const plan::Plan plan = plan_of(Stage::kMsv, *m);
  driver_.local_bytes_of = {{std::string(plan.chosen.variant->entry_name), 4096}};
  auto measured = (*bench)->measure(plan, plan.chosen);
  ASSERT_TRUE(measured) << measured.error().to_string();
  EXPECT_THAT(measured->refused, testing::HasSubstr("bytes a thread in local memory"));
  EXPECT_FALSE(measured->exact());

  driver_.local_bytes_of.clear();
  driver_.fail_call("library_load", driver::code::kInvalidImage);
  measured = (*bench)->measure(plan, plan.chosen);
  ASSERT_TRUE(measured) << measured.error().to_string();
  EXPECT_EQ(measured->refused, "");
  EXPECT_TRUE(measured->exact()) << measured->first_wrong;
}

TEST_F(BenchTest, TargetsTheDeviceCannotHoldAreAnError) {
  driver_.memory_limit = 1 << 20;
  kernels_ = scripted_kernels(std::make_shared<KernelScript>());
  const auto bench = Bench::create(api_, 0, *kernels_, data().targets, {.residues = 20'000'000});
  ASSERT_FALSE(bench);
  EXPECT_EQ(bench.error().code, ErrorCode::kResources);
}

TEST_F(BenchTest, TuningTakesTheFastestExactCandidate) {
  const auto m = model(0);
  const plan::Plan plan = plan_of(Stage::kSsv, *m);
  ASSERT_GE(plan.fallbacks.size(), 2u);
  // The second candidate is twice as fast as the planner's choice, the third is fastest and wrong.
  const auto identity = [](const plan::Candidate& c) {
    return std::pair{c.expected.launch.dynamic_shared_bytes, c.expected.launch.block_threads};
  };
  const plan::Candidate* second = nullptr;
  const plan::Candidate* third = nullptr;
  for (const plan::Candidate& c : plan.fallbacks) {
    if (identity(c) == identity(plan.chosen) || !c.variant->competes) continue;
    if (second == nullptr) {
      second = &c;
    } else if (third == nullptr && identity(c) != identity(*second)) {
      third = &c;
    }
  }
  ASSERT_TRUE(second != nullptr && third != nullptr);
  driver_.on_launch = [&](const FakeLaunch& launch) {
    const auto is = [&](const plan::Candidate& c) {
      return launch.shared_bytes == c.expected.launch.dynamic_shared_bytes &&
             static_cast<int>(launch.block_threads) == c.expected.launch.block_threads;
    };
    driver_.elapsed_milliseconds = is(*third) ? 0.1f : is(*second) ? 0.5f : 1.0f;
    return is(*third) ? run_on_host_wrongly(launch) : run_on_host(launch);
  };
  const auto bench = open({});
  bench->use_model(m);
  const auto tuned = bench::tune(*bench, plan, "version", 0);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  ASSERT_TRUE(tuned->choice);
  EXPECT_EQ(identity(*second).first, [&] {
    for (const Measurement& x : tuned->measurements) {
      if (x.candidate.constants == tuned->choice->constants &&
          x.candidate.variant->name == tuned->choice->variant) {
        return x.candidate.expected.launch.dynamic_shared_bytes;
      }
    }
    return std::int64_t{-1};
  }());
  EXPECT_NEAR(tuned->choice->gcups, 2 * tuned->choice->planned_gcups, 1e-6);
  EXPECT_EQ(tuned->choice->class_length, plan.class_length);
  EXPECT_EQ(tuned->choice->catalogue, "version");

  // The planner chooses it.
  plan::TuningTable table;
  table.add(*tuned->choice);
  plan::PlanOptions options;
  options.tuned = &table;
  const auto again = plan::make_plan(Stage::kSsv, m->hmm.M, m->bytes.Kp, bench->device(), options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->chosen.constants, tuned->choice->constants);
  EXPECT_THAT(again->tuned, testing::HasSubstr("measured"));
}

// A kernel wins only if it is faster by more than the difference of two measurements of one kernel.
TEST_F(BenchTest, TuningKeepsThePlannersChoiceWithinNoise) {
  const auto m = model(0);
  const plan::Plan plan = plan_of(Stage::kSsv, *m);
  for (const auto& [milliseconds, kept] :
       {std::pair{1.0f, true}, std::pair{0.995f, true}, std::pair{0.98f, false}}) {
    driver_.on_launch = [&](const FakeLaunch& launch) {
      const bool planned =
          launch.shared_bytes == plan.chosen.expected.launch.dynamic_shared_bytes &&
          static_cast<int>(launch.block_threads) == plan.chosen.expected.launch.block_threads;
      driver_.elapsed_milliseconds = planned ? 1.0f : milliseconds;
      return run_on_host(launch);
    };
    const auto bench = open({});
    bench->use_model(m);
    const auto tuned = bench::tune(*bench, plan, "version", 0);
    ASSERT_TRUE(tuned) << tuned.error().to_string();
    ASSERT_TRUE(tuned->choice);
    EXPECT_EQ(tuned->choice->constants == plan.chosen.constants &&
                  tuned->choice->variant == plan.chosen.variant->name,
              kept)
        << milliseconds;
  }
}

TEST_F(BenchTest, TheSelfCheckTellsAWorkingDeviceFromABrokenOne) {
  kernels_ = scripted_kernels(std::make_shared<KernelScript>());
  for (const Stage stage : kStages) {
    const auto plan =
        plan::make_plan(stage, bench::kSelfCheckLength, 29, *plan::find_device("H200"));
    ASSERT_TRUE(plan);
    driver_.on_launch = run_on_host;
    const auto working = bench::self_check(api_, 0, *kernels_, *plan);
    ASSERT_TRUE(working) << working.error().to_string();
    EXPECT_TRUE(working->exact()) << working->refused << working->first_wrong;
    EXPECT_EQ(working->targets, 128u);
    driver_.on_launch = run_on_host_wrongly;
    const auto broken = bench::self_check(api_, 0, *kernels_, *plan);
    ASSERT_TRUE(broken);
    EXPECT_GT(broken->wrong, 0u) << plan::stage_name(stage);
  }
  driver_.on_launch = [](const FakeLaunch&) { return driver::code::kLaunchFailed; };
  const auto plan =
      plan::make_plan(Stage::kSsv, bench::kSelfCheckLength, 29, *plan::find_device("H200"));
  const auto failing = bench::self_check(api_, 0, *kernels_, *plan);
  EXPECT_TRUE(!failing || !failing->refused.empty());
}

}  // namespace
}  // namespace hmmjit::tests
