// Results in order, and what becomes of them where a kernel turns out to be wrong.
#include "search/result_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "search/distrusted_kernels.hpp"

namespace hmmjit::search_run {
namespace {

using gpu::UsedKernel;
using testing::ElementsAre;
using testing::IsEmpty;

UsedKernel kernel(const std::string& name) { return {gpu::Link::kViterbi, name}; }

Retained made_with(std::size_t index, std::set<UsedKernel> kernels, std::size_t bytes = 100) {
  Retained out;
  out.index = index;
  out.kernels = std::move(kernels);
  out.bytes = bytes;
  out.digest.low = index + 1;
  if (!out.kernels.empty()) out.query = std::make_shared<const Query>(Hmm{});
  return out;
}

std::vector<std::size_t> indices(const std::vector<Again>& models) {
  std::vector<std::size_t> out;
  for (const Again& model : models) out.push_back(model.index);
  return out;
}

TEST(DistrustedKernels, DeliveredModelsAreRecalledOnce) {
  DistrustedKernels kernels(1000);
  EXPECT_FALSE(kernels.keep(made_with(0, {kernel("a")})));
  EXPECT_FALSE(kernels.keep(made_with(1, {kernel("b")})));
  EXPECT_FALSE(kernels.keep(made_with(2, {kernel("a"), kernel("b")})));
  EXPECT_FALSE(kernels.keep(made_with(3, {})));  // made on the CPU: nothing to keep
  EXPECT_EQ(kernels.bytes(), 300u);
  const std::vector<UsedKernel> wrong{kernel("a")};
  EXPECT_FALSE(kernels.include_any({kernel("a")}));
  EXPECT_TRUE(kernels.add(wrong));
  EXPECT_FALSE(kernels.add(wrong));
  EXPECT_TRUE(kernels.include_any({kernel("b"), kernel("a")}));
  EXPECT_FALSE(kernels.include_any({kernel("b")}));
  const DistrustedKernels::Recalled recalled = kernels.recall(wrong);
  EXPECT_THAT(indices(recalled.models), ElementsAre(0u, 2u));
  for (const Again& model : recalled.models) {
    ASSERT_TRUE(model.expected);  // what was delivered is to be confirmed
    EXPECT_EQ(model.expected->low, model.index + 1);
  }
  EXPECT_FALSE(recalled.lost);
  EXPECT_EQ(kernels.bytes(), 100u);
  EXPECT_THAT(kernels.recall(wrong).models, IsEmpty());
  // One whose kernel turned out to be wrong on the way here.
  const auto again = kernels.keep(made_with(4, {kernel("a")}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, 4u);
  EXPECT_TRUE(again->expected);
}

TEST(DistrustedKernels, WhatIsNotKeptIsLost) {
  DistrustedKernels kernels(250);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_FALSE(kernels.keep(made_with(i, {kernel(std::string(1, static_cast<char>('a' + i)))})));
  EXPECT_EQ(kernels.bytes(), 200u);
  const std::vector<UsedKernel> kept{kernel("c")}, forgotten{kernel("b")};
  kernels.add(kept);
  EXPECT_FALSE(kernels.recall(kept).lost);
  kernels.add(forgotten);
  const DistrustedKernels::Recalled recalled = kernels.recall(forgotten);
  EXPECT_TRUE(recalled.lost);
  EXPECT_THAT(recalled.models, IsEmpty());
}

struct ResultQueueTest : testing::Test {
  struct Sink final : ResultSink {
    Status receive(const ModelResult& result) override {
      got.push_back(result.index);
      if (result.index == failing) return fail(ErrorCode::kOutput, "no room");
      return {};
    }
    std::vector<std::size_t> got;
    std::size_t failing = 99;
  };
  ResultQueue queue(bool hold_back = false) {
    return ResultQueue(tasks, window, distrusted, sink, progress, 1000, hold_back);
  }
  static std::optional<Again> add(ResultQueue& to, std::size_t index, std::size_t bytes = 100,
                                  std::set<UsedKernel> kernels = {}) {
    ModelResult result;
    result.index = index;
    result.hits.reported = 2;
    return to.add(std::move(result), bytes, 0, made_with(index, std::move(kernels)));
  }

  SearchOptions options;
  SearchTasks tasks{options, false};
  SearchWindow window{{.model_bytes = 1000, .target_bytes = 1000, .threads = 1, .device = true}};
  DistrustedKernels distrusted{1000};
  Sink sink;
  SearchProgress progress;
};

TEST_F(ResultQueueTest, ResultsLeaveInTheOrderOfTheModels) {
  ResultQueue results = queue();
  EXPECT_FALSE(results.deliver());
  add(results, 2);
  add(results, 1);
  EXPECT_FALSE(results.deliver());
  EXPECT_FALSE(results.empty());
  add(results, 0);
  EXPECT_TRUE(results.deliver());
  EXPECT_THAT(sink.got, ElementsAre(0u, 1u, 2u));
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(progress.models_done, 3u);
  SearchStatistics statistics;
  results.add_to(statistics);
  EXPECT_EQ(statistics.models, 3u);
  EXPECT_EQ(statistics.hits_reported, 6u);
}

TEST_F(ResultQueueTest, AnErrorWaitsForTheResultsBeforeIt) {
  ResultQueue results = queue();
  results.fail(3, {ErrorCode::kInput, "later", {}, {}});
  results.fail(1, {ErrorCode::kInput, "first", {}, {}});
  results.fail(2, {ErrorCode::kInput, "second", {}, {}});
  EXPECT_FALSE(results.deliver());
  EXPECT_FALSE(tasks.stopped());
  add(results, 0);
  EXPECT_TRUE(results.deliver());
  EXPECT_THAT(sink.got, ElementsAre(0u));
  EXPECT_TRUE(tasks.stopped());
  EXPECT_EQ(tasks.error()->message, "first");
}

TEST_F(ResultQueueTest, AFailingSinkEndsTheSearch) {
  ResultQueue results = queue();
  sink.failing = 0;
  add(results, 0);
  add(results, 1);
  results.deliver();
  EXPECT_THAT(sink.got, ElementsAre(0u));
  EXPECT_EQ(tasks.error()->message, "no room");
}

TEST_F(ResultQueueTest, RoomIsSharedWithResultsWhoseTextIsBeingMade) {
  ResultQueue results = queue();
  EXPECT_TRUE(results.reserve(600, false));
  EXPECT_FALSE(results.reserve(600, false));
  EXPECT_TRUE(results.reserve(600, true));
  results.unreserve(600);
  results.unreserve(600);
  add(results, 1, 900);
  EXPECT_FALSE(results.full());
  EXPECT_FALSE(results.reserve(101, false));
  add(results, 2, 100);
  EXPECT_TRUE(results.full());
  add(results, 0, 1);
  results.deliver();
  EXPECT_FALSE(results.full());
  EXPECT_TRUE(results.reserve(1000, false));
}

TEST_F(ResultQueueTest, ResultsOfWrongKernelsAreTakenBack) {
  window.start_models({});  // one is on its way: the search is not complete
  ResultQueue results = queue(true);
  add(results, 0, 100, {kernel("a")});
  add(results, 1, 100, {kernel("b")});
  EXPECT_FALSE(results.deliver());  // held back while there is room
  const std::vector<UsedKernel> wrong{kernel("a")};
  distrusted.add(wrong);
  EXPECT_THAT(indices(results.take_back()), ElementsAre(0u));
  const auto again = add(results, 0, 100, {kernel("a")});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->expected);  // nothing has been delivered of it
  EXPECT_FALSE(add(results, 0));
  add(results, 2, 100, {kernel("b")});
  EXPECT_TRUE(results.deliver());  // more than may be held
  EXPECT_THAT(sink.got, ElementsAre(0u));
  window.end_models(true);
  EXPECT_TRUE(results.deliver());
  EXPECT_THAT(sink.got, ElementsAre(0u, 1u, 2u));
  EXPECT_EQ(distrusted.bytes(), 200u);
}

}  // namespace
}  // namespace hmmjit::search_run
