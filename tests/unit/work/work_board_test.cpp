// Every opened pair is done once: in all interleavings of the users of a board, and with threads.
#include "work/work_board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hmmjit {
namespace {

using Pair = std::pair<ModelId, BlockId>;

TargetsPtr some_targets() { return std::make_shared<const TargetBlock>(); }

// A board, and the fate of its pairs.
struct Observed {
  std::map<Pair, int> opened, done, reported;
  std::set<Pair> was_open;
  WorkBoard board{[this](ModelId model, BlockId block) { ++reported[{model, block}]; }};
  std::map<BlockId, TargetsPtr> targets{{1, some_targets()}, {2, some_targets()}};
  std::map<int, SegmentId> segments;
  std::map<int, std::vector<Claim>> claims;

  void open(ModelId model, BlockId block) {
    ++opened[{model, block}];
    board.open(model, block, targets.at(block));
    note_open();
  }
  void take(ModelId model, BlockId block) {
    const TargetsPtr taken = board.take_for_host(model, block);
    if (taken == nullptr) return;
    EXPECT_EQ(taken, targets.at(block));
    ++done[{model, block}];
  }
  void claim(int name, ModelId model, int segment) {
    if (!segments.contains(segment)) return;
    claims[name] = board.claim(model, segments.at(segment));
    for (const Claim& claim : claims[name]) {
      if (!claim) continue;
      EXPECT_TRUE(was_open.contains({claim.model(), claim.block()}));
      EXPECT_EQ(claim.targets(), targets.at(claim.block()));
    }
  }
  void finish(int name) {
    for (Claim& claim : claims[name]) {
      if (!claim) continue;
      ++done[{claim.model(), claim.block()}];
      claim.finish();
      EXPECT_FALSE(claim);
    }
    claims.erase(name);
  }
  void note_open() {
    for (const auto& [pair, times] : opened) {
      if (board.is_open(pair.first, pair.second)) was_open.insert(pair);
    }
  }
  // The CPU does the pairs that fell back to it; the board has reported all of them.
  void expect_all_done_once() {
    claims.clear();
    board.refuse_all();
    for (const auto& [pair, times] : opened) {
      EXPECT_FALSE(board.is_open(pair.first, pair.second));
      const bool before = done[pair] > 0;
      take(pair.first, pair.second);
      EXPECT_EQ(done[pair], 1) << "model " << pair.first << ", block " << pair.second;
      EXPECT_LE(reported[pair], 1);
      if (!before) {
        EXPECT_EQ(reported[pair], was_open.contains(pair) ? 1 : 0);
      }
      EXPECT_EQ(board.take_for_host(pair.first, pair.second), nullptr);
    }
    for (const auto& [name, segment] : segments) EXPECT_EQ(board.open_models(segment), 0u);
    for (const auto& [block, of] : targets) EXPECT_EQ(of.use_count(), 1);
  }
};

using Step = std::function<void(Observed&)>;
using Script = std::vector<Step>;

// Runs all interleavings of the scripts, each on a new board.
int run_all_orders(const std::vector<Script>& scripts) {
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < scripts.size(); ++s) order.insert(order.end(), scripts[s].size(), s);
  int count = 0;
  do {
    Observed observed;
    std::vector<std::size_t> at(scripts.size(), 0);
    for (const std::size_t s : order) scripts[s][at[s]++](observed);
    observed.expect_all_done_once();
    ++count;
    if (testing::Test::HasFailure()) {
      std::string text;
      for (const std::size_t s : order) text += std::to_string(s);
      ADD_FAILURE() << "in the order " << text;
      return count;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return count;
}

const Script kFeed = {[](Observed& o) { o.board.add_block(1), o.open(1, 1); },
                      [](Observed& o) { o.board.add_block(2), o.open(1, 2); },
                      [](Observed& o) { o.open(2, 1); }};
const Script kHost = {[](Observed& o) { o.take(1, 1); }, [](Observed& o) { o.take(1, 2); }};

Script device(int name, bool finishes, ModelId model = 1) {
  return {[=](Observed& o) { o.claim(name, model, 0); },
          [=](Observed& o) { finishes ? o.finish(name) : (void)o.claims.erase(name); }};
}

TEST(WorkBoard, EveryPairIsDoneOnceInAllOrders) {
  const Script pack = {[](Observed& o) { o.segments[0] = o.board.make_segment({1, 2}); }};
  const std::vector<Script> failures = {
      {[](Observed& o) { o.board.refuse_model(1); }},
      {[](Observed& o) { o.board.refuse_all(); }},
      {[](Observed& o) {
        if (o.segments.contains(0)) o.board.refuse_segment(o.segments[0]);
      }},
      {[](Observed& o) {  // the segment does not fit on the device
        if (!o.segments.contains(0)) return;
        const SegmentId whole = std::exchange(o.segments[0], o.board.make_segment({1}));
        o.segments[1] = o.board.make_segment({2});
        EXPECT_EQ(o.board.open_models(whole), 0u);
      }},
      {[](Observed& o) {  // streaming: a segment that seems done is released
        if (o.segments.contains(0)) o.board.close_if_done(o.segments[0]);
      }},
  };
  for (const Script& failure : failures) {
    for (const bool finishes : {false, true})
      EXPECT_EQ(run_all_orders({kFeed, pack, device(0, finishes), kHost, failure}), 15'120);
  }
}

TEST(WorkBoard, TwoDevicesNeverHaveTheSamePair) {
  const Script pack = {[](Observed& o) { o.segments[0] = o.board.make_segment({2, 1}); }};
  for (const bool first : {false, true}) {
    for (const bool second : {false, true})
      EXPECT_EQ(
          run_all_orders({kFeed, pack, device(0, first), device(1, second), device(2, true, 2)}),
          75'600);
  }
}

TEST(WorkBoard, APairGivenUpIsNeverADevicesAgain) {
  Observed o;
  o.board.add_block(1);
  o.open(7, 1);
  const SegmentId segment = o.board.make_segment({1});
  EXPECT_EQ(o.board.open_models(segment), 1u);
  { const auto claims = o.board.claim(7, segment); }
  EXPECT_EQ(o.board.open_models(segment), 0u);
  EXPECT_EQ((o.reported[{7, 1}]), 1);
  EXPECT_FALSE(o.board.claim(7, segment).front());
  o.take(7, 1);
  EXPECT_EQ((o.done[{7, 1}]), 1);
}

TEST(WorkBoard, WhatIsOpenedAfterARefusalIsTheHosts) {
  for (int what = 0; what < 4; ++what) {
    Observed o;
    o.board.add_block(1);
    o.board.add_block(2);
    const SegmentId segment = o.board.make_segment({1});
    const SegmentId other = o.board.make_segment({2});
    if (what == 0) o.board.refuse_model(5);
    if (what == 1) o.board.refuse_segment(segment);
    if (what == 2) o.board.refuse_all();
    if (what == 3) {
      EXPECT_TRUE(o.board.close_if_done(segment));
    }
    o.open(5, 1);
    o.open(6, 2);
    EXPECT_EQ(o.board.open_models(segment), 0u);
    EXPECT_EQ(o.board.open_models(other) > 0, what != 2);
    o.expect_all_done_once();
  }
  Observed o;
  o.board.refuse_all();
  o.board.add_block(1);
  o.open(5, 1);
  EXPECT_FALSE(o.board.is_open(5, 1));
  o.expect_all_done_once();
}

TEST(WorkBoard, ModelsAreVisitedInOrderAndOnlyWhereSomethingIsOpen) {
  Observed o;
  o.board.add_block(1);
  o.board.add_block(2);
  for (const ModelId model : {9u, 3u, 5u, 4u}) o.open(model, 1);
  o.open(4, 2);
  const SegmentId segment = o.board.make_segment({2, 1});
  const auto visited = [&](std::size_t most) {
    std::vector<ModelId> models;
    for (std::optional<ModelId> id = o.board.next_open(segment, 0); id && models.size() < most;
         id = o.board.next_open(segment, *id + 1))
      models.push_back(*id);
    return models;
  };
  EXPECT_EQ(visited(10), (std::vector<ModelId>{3, 4, 5, 9}));
  EXPECT_EQ(visited(2), (std::vector<ModelId>{3, 4}));
  o.take(3, 1);
  o.take(4, 1);
  EXPECT_EQ(visited(10), (std::vector<ModelId>{4, 5, 9}));
  EXPECT_EQ(o.board.open_models(segment), 3u);
  // In the order of the segment's blocks.
  const auto claims = o.board.claim(4, segment);
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_TRUE(claims[0]);
  EXPECT_FALSE(claims[1]);
  EXPECT_EQ(claims[0].block(), 2u);
  EXPECT_EQ(visited(10), (std::vector<ModelId>{5, 9}));
  o.board.refuse_model(9);
  EXPECT_EQ(visited(10), (std::vector<ModelId>{5}));
  EXPECT_FALSE(o.board.close_if_done(segment));
  o.take(5, 1);
  EXPECT_TRUE(o.board.close_if_done(segment));
  EXPECT_EQ((o.reported), (std::map<Pair, int>{{{9, 1}, 1}}));
}

TEST(WorkBoard, ForgetsWhatIsRemovedAndKeepsTargetsOnlyForPairs) {
  Observed o;
  for (const BlockId block : {1u, 2u}) o.board.add_block(block);
  const SegmentId segment = o.board.make_segment({1, 2});
  o.open(1, 1);
  o.open(1, 2);
  EXPECT_EQ(o.targets[1].use_count(), 2);
  o.board.remove_block(1);  // too early
  o.take(1, 1);
  EXPECT_EQ(o.targets[1].use_count(), 1);
  o.board.remove_block(1);
  auto claims = o.board.claim(1, segment);
  ASSERT_EQ(claims.size(), 2u);  // indices are kept
  EXPECT_FALSE(claims[0]);
  ASSERT_TRUE(claims[1]);
  EXPECT_EQ(claims[1].finish(), o.targets[2]);
  o.board.remove_block(2);
  EXPECT_TRUE(o.board.claim(1, segment).empty());
  // A block that the board does not know falls to the CPU.
  o.open(2, 1);
  EXPECT_FALSE(o.board.is_open(2, 1));
  o.take(2, 1);
  o.board.refuse_model(3);
  o.board.remove_model(3);
  o.board.add_block(1);
  o.board.remove_block(1);
  o.board.add_block(1);
  o.open(3, 1);
  EXPECT_TRUE(o.board.is_open(3, 1));
  o.take(3, 1);
}

TEST(Claim, CanBeMovedAndEndsOnce) {
  Observed o;
  for (const BlockId block : {1u, 2u}) o.board.add_block(block);
  o.open(1, 1);
  o.open(1, 2);
  auto claims = o.board.claim(1, o.board.make_segment({1, 2}));
  Claim first = std::move(claims[0]);
  EXPECT_FALSE(claims[0]);
  Claim second = std::move(claims[1]);
  second = std::move(first);  // the claim on block 2 ends unfinished
  EXPECT_EQ(o.reported, (std::map<Pair, int>{{{1, 2}, 1}}));
  EXPECT_EQ(second.block(), 1u);
  EXPECT_EQ(second.finish(), o.targets[1]);
  EXPECT_EQ(second.finish(), nullptr);
  EXPECT_FALSE(second);
  o.take(1, 2);
}

// All users at once, for the thread sanitizer; no pair is lost.
TEST(WorkBoard, ThreadsDoEveryPairOnce) {
  constexpr ModelId kModels = 20;
  constexpr BlockId kBlocks = 30;
  std::atomic<std::size_t> left_count{0};
  for (unsigned round = 0; round < 20; ++round) {
    std::vector<std::atomic<int>> done(kModels * kBlocks);
    const auto count = [&](ModelId model, BlockId block) { ++done[model * kBlocks + block]; };
    WorkBoard* of = nullptr;
    WorkBoard board([&](ModelId model, BlockId block) {
      ++left_count;
      if (of->take_for_host(model, block) != nullptr) count(model, block);
    });
    of = &board;
    std::atomic<SegmentId> newest{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {  // adds blocks, and segments of five
      std::vector<BlockId> loose;
      for (BlockId block = 0; block < kBlocks; ++block) {
        board.add_block(block);
        const TargetsPtr targets = some_targets();
        for (ModelId model = 0; model < kModels; ++model) board.open(model, block, targets);
        loose.push_back(block);
        if (loose.size() == 5) newest = board.make_segment(std::exchange(loose, {}));
      }
      board.refuse_model(3);
      if (round % 3 == 0) board.refuse_all();
    });
    for (unsigned device = 0; device < 2; ++device) {
      threads.emplace_back([&, device] {
        std::minstd_rand rng(round * 2 + device + 1);
        while (!over) {
          const SegmentId segment = 1 + rng() % (newest + 1);
          const std::optional<ModelId> found = board.next_open(segment, rng() % kModels);
          if (!found) std::this_thread::yield();
          const ModelId model = found.value_or(0);
          for (Claim& claim : board.claim(model, segment)) {
            if (!claim || rng() % 5 == 0) continue;  // destroyed unfinished
            count(claim.model(), claim.block());
            claim.finish();
          }
        }
      });
    }
    threads.emplace_back([&] {
      std::minstd_rand rng(round + 99);
      while (!over) {
        const ModelId model = rng() % kModels;
        const BlockId block = rng() % kBlocks;
        if (board.is_open(model, block) && board.take_for_host(model, block) != nullptr)
          count(model, block);
      }
    });
    threads[0].join();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    over = true;
    for (std::size_t i = 1; i < threads.size(); ++i) threads[i].join();
    board.refuse_all();
    for (ModelId model = 0; model < kModels; ++model) {
      for (BlockId block = 0; block < kBlocks; ++block)
        ASSERT_EQ(done[model * kBlocks + block], 1) << model << ", " << block;
    }
  }
  EXPECT_GT(left_count, 0u);
}

}  // namespace
}  // namespace hmmjit
