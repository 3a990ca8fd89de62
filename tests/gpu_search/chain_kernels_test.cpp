// Which kernels a search asks for, in what order, and what a chain waits for.
#include "gpu/chain_kernels.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "gpu/chain_plans.hpp"
#include "model/profile.hpp"
#include "plan/device_traits.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using gpu::ChainKernels;
using gpu::Link;

// Kernels that are compiled when the test says so.
class LateKernels final : public gpu::KernelSource {
 public:
  struct Asked {
    plan::Plan plan;
    int priority;
    std::promise<Result<compile::KernelPtr>> promise;
  };
  explicit LateKernels(std::vector<Asked>& asked, std::mutex& mutex)
      : asked_(asked), mutex_(mutex) {}
  compile::KernelProvider::Future request(const plan::Plan& plan, int priority) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back({plan, priority, {}});
    return asked_.back().promise.get_future().share();
  }
  std::optional<compile::KernelProvider::Future> find(const plan::Plan&) override {
    return std::nullopt;
  }
  Result<compile::KernelPtr> refused(const plan::Plan&, const compile::KernelPtr&,
                                     const std::string&) override {
    return fail(ErrorCode::kCompile, "refused");
  }
  compile::ProviderStatistics statistics() const override { return {}; }
  void cancel() override {}

 private:
  std::vector<Asked>& asked_;
  std::mutex& mutex_;
};

class ChainKernelsTest : public testing::Test {
 protected:
  static SearchModel model_of(int M) {
    return *make_search_model(test_support::random_hmm(static_cast<std::uint64_t>(M), M,
                                                       test_support::ModelKind::kTypical));
  }
  void open() {
    kernels_.open(std::make_unique<LateKernels>(asked_, mutex_), *plan::find_device("H200"));
  }
  const gpu::KernelSlots& planned(const SearchModel& model) {
    const gpu::KernelSlots* slots = nullptr;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((slots = kernels_.of(model)) == nullptr && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_NE(slots, nullptr);
    return *slots;
  }
  const gpu::KernelSlots& opened() {
    open();
    return planned(model_of(100));
  }
  // Ends the compiles of a stage; of Viterbi those of one variant.
  void finish(plan::Stage stage, bool well, std::string_view variant = {}) {
    const std::lock_guard lock(mutex_);
    int finished = 0;
    for (LateKernels::Asked& a : asked_) {
      if (a.plan.stage != stage) continue;
      if (!variant.empty() && a.plan.chosen.variant->name != variant) continue;
      ++finished;
      if (!well) {
        a.promise.set_value(fail(ErrorCode::kCompile, "no luck"));
        continue;
      }
      auto kernel = std::make_shared<compile::Kernel>();
      kernel->candidate = a.plan.chosen;
      a.promise.set_value(compile::KernelPtr(kernel));
    }
    EXPECT_GT(finished, 0);
  }

  std::mutex mutex_;
  std::vector<LateKernels::Asked> asked_;
  ChainKernels kernels_{{}};
};

TEST_F(ChainKernelsTest, AChainWaitsForTheKernelsThatDecideMost) {
  const SearchModel model = model_of(100);
  EXPECT_EQ(kernels_.of(model), nullptr);  // nobody plans yet
  open();
  const gpu::KernelSlots& slots = planned(model);
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kComing);
  finish(plan::Stage::kSsv, true);
  finish(plan::Stage::kBias, true);
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kComing);
  finish(plan::Stage::kGate, true);
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kComing);
  finish(plan::Stage::kViterbi, true, "lane_scan");
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kThere);
  EXPECT_FALSE(kernels_.soon(slots, Link::kParser));
  finish(plan::Stage::kParser, true);
  EXPECT_TRUE(kernels_.soon(slots, Link::kParser));
  EXPECT_EQ(kernels_.reason(), "");
}

TEST_F(ChainKernelsTest, AKernelThatFailsIsNotWaitedFor) {
  const gpu::KernelSlots& slots = opened();
  finish(plan::Stage::kSsv, true);
  for (const plan::Stage stage : {plan::Stage::kBias, plan::Stage::kGate, plan::Stage::kViterbi}) {
    EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kComing);
    finish(stage, false);
  }
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kThere);
  EXPECT_NE(kernels_.reason(), "");
}

TEST_F(ChainKernelsTest, NothingGoesWithoutSsv) {
  const gpu::KernelSlots& slots = opened();
  finish(plan::Stage::kSsv, false);
  EXPECT_EQ(kernels_.state(slots), ChainKernels::State::kFailed);
}

TEST_F(ChainKernelsTest, UsualLengthsAndDecidingKernelsAreMostUrgent) {
  const std::vector<SearchModel> models{model_of(40), model_of(100), model_of(200), model_of(900)};
  for (const SearchModel& model : models) (void)kernels_.of(model);
  open();
  for (const SearchModel& model : models) (void)planned(model);
  const std::lock_guard lock(mutex_);
  std::map<std::pair<std::string, int>, int> priority;  // by kernel and planned length
  for (const LateKernels::Asked& a : asked_) {
    const auto [at, made] = priority.emplace(
        std::pair(std::string(a.plan.chosen.variant->entry_name), a.plan.model_length), a.priority);
    EXPECT_TRUE(made) << "asked for twice: " << at->first.first;
  }
  const auto of = [&](const char* start, int length) {
    for (const auto& [key, value] : priority) {
      if (key.first.starts_with(start) && key.second == length) return value;
    }
    ADD_FAILURE() << start << ' ' << length;
    return -1;
  };
  EXPECT_GT(of("ssv", 256), of("bias", 1));
  EXPECT_EQ(of("bias", 1), of("gate", 1));
  EXPECT_GT(of("gate", 1), of("viterbi_lane_scan", 256));
  EXPECT_GT(of("viterbi_lane_scan", 256), of("ssv", 128));
  EXPECT_GT(of("viterbi_lane_scan", 128), of("ssv", 64));
  EXPECT_GT(of("viterbi_lane_scan", 64), of("ssv", 1024));
  EXPECT_GT(of("viterbi_lane_scan", 1024), of("forward", 256));
  EXPECT_GT(of("forward", 1024), of("msv", 256));
  EXPECT_GT(of("msv", 256), of("viterbi_wavefront", 256));
  EXPECT_GT(of("viterbi_wavefront", 256), of("parser", 256));
}

}  // namespace
}  // namespace hmmjit::tests
