// Results leave in order, and an error leaves after those before it.
#include "search/result_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hmmjit::search_run {
namespace {

using testing::ElementsAre;

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
  ResultQueue queue() { return ResultQueue(search, sink, 1000); }
  static void add(ResultQueue& to, std::size_t index, std::size_t bytes = 100) {
    ModelResult result;
    result.index = index;
    result.hits.reported = 2;
    to.add(std::move(result), bytes, 0);
  }

  SearchOptions options;
  SearchProgress progress;
  SearchContext search{options, progress, false};
  Sink sink;
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
  EXPECT_EQ(progress.results_delivered, 3u);
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
  EXPECT_FALSE(search.tasks.stopped());
  add(results, 0);
  EXPECT_TRUE(results.deliver());
  EXPECT_THAT(sink.got, ElementsAre(0u));
  EXPECT_TRUE(search.tasks.stopped());
  EXPECT_EQ(search.tasks.error()->message, "first");
}

TEST_F(ResultQueueTest, AFailingSinkEndsTheSearch) {
  ResultQueue results = queue();
  sink.failing = 0;
  add(results, 0);
  add(results, 1);
  results.deliver();
  EXPECT_THAT(sink.got, ElementsAre(0u));
  EXPECT_EQ(search.tasks.error()->message, "no room");
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

}  // namespace
}  // namespace hmmjit::search_run
