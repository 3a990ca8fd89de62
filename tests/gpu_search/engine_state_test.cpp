// The components that the threads of a device share, one at a time.
#include "gpu/engine_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gpu/active_device.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/client.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/gpu_filters.hpp"
#include "gpu/target_store.hpp"
#include "gpu_search/pairs_fixture.hpp"
#include "layout/packed_targets.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::gpu {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kAnyMemory = ~std::uint64_t{0};

BlockRef block(std::uint64_t id, std::size_t residues) {
  return {id, tests::block_of({std::vector<Residue>(residues, Residue{1})}, id * 100)};
}

// Residues of each segment.
std::vector<std::uint64_t> sizes(const BlockGroups::Groups& groups) {
  std::vector<std::uint64_t> out;
  for (const auto& group : groups) {
    out.push_back(0);
    for (const BlockRef& b : group) out.back() += b.targets->residue_count();
  }
  return out;
}
using Sizes = std::vector<std::uint64_t>;

TEST(BusyTimes, AreCountedOnceHoweverMany) {
  BusyTimes times;
  for (int n = 0; n < 20000; ++n) {
    times.add(n, n + 0.5);
    times.add(n + 0.25, n + 0.75);  // of another stream
  }
  EXPECT_EQ(times.seconds(), 20000 * 0.75);
}

TEST(ChangeSignal, AChangeBetweenLookingAndWaitingIsNotMissed) {
  ChangeSignal signal;
  const std::uint64_t seen = signal.count();
  signal.raise();
  signal.wait_beyond(seen);                      // would not return
  signal.wait_beyond(seen, Trace::now() + 600);  // nor this one in time
  EXPECT_NE(signal.count(), seen);
  signal.wait_beyond(signal.count(),
                     Trace::now() + 1e-3);  // nothing has changed: as long as it may
}

struct NoClient final : Client {
  void deliver(ModelId, std::vector<Delivery>, bool) override {}
  void stopped(const Error&, bool) override {}
};

TEST(ClientCalls, DetachWaitsForAllUses) {
  ClientCalls calls;
  EXPECT_FALSE(calls.use());
  NoClient client;
  WorkBoard board([](ModelId, BlockId) {});
  calls.attach(client, board, {.F1 = 0.5});
  ClientUse use = calls.use();
  ASSERT_TRUE(use);
  EXPECT_EQ(&use->client, &client);
  EXPECT_EQ(&use->board, &board);
  EXPECT_EQ(use->limits.F1, 0.5);
  ClientUse copy = use;
  ClientUse moved = std::move(use);
  std::atomic<bool> left{false};
  std::jthread leaving([&] {
    calls.detach();
    left = true;
  });
  while (calls.use()) std::this_thread::sleep_for(1ms);
  copy = {};
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(left);
  EXPECT_EQ(&moved->client, &client);
  moved = {};
  leaving.join();
  EXPECT_TRUE(left);
  calls.attach(client, board, {});
  EXPECT_TRUE(calls.use());
}

constexpr bool kBesideWork = true;

TEST(DeviceMemory, LoadsAndBuffersStayWithinTheBudget) {
  DeviceMemory memory(1000);
  ASSERT_TRUE(memory.resize_buffer(0, 300));
  // The buffers that there are count, or those that will be needed where these are more.
  EXPECT_FALSE(memory.begin_load({.bytes = 701, .buffers = 0}, kBesideWork));
  EXPECT_FALSE(memory.begin_load({.bytes = 600, .buffers = 401}, kBesideWork));
  const DeviceMemory::Reservation load{.bytes = 600, .buffers = 400};
  ASSERT_TRUE(memory.begin_load(load, kBesideWork));
  // One at a time while there is other work; several if there is room.
  EXPECT_FALSE(memory.begin_load({.bytes = 1, .buffers = 0}, kBesideWork));
  EXPECT_FALSE(memory.begin_load({.bytes = 101, .buffers = 0}));
  const DeviceMemory::Reservation small{.bytes = 100, .buffers = 0};
  ASSERT_TRUE(memory.begin_load(small));
  EXPECT_FALSE(memory.resize_buffer(300, 301));  // the 300 are gone, too
  ASSERT_TRUE(memory.resize_buffer(0, 300));
  memory.end_load(small);
  memory.end_load(load);
  EXPECT_TRUE(memory.resize_buffer(300, 1000));
  EXPECT_TRUE(memory.resize_buffer(1000, 10));
  EXPECT_EQ(memory.peak(), 1000u);
}

TEST(DeviceMemory, WhatIsLargerThanTheBudgetIsTriedAlone) {
  DeviceMemory memory(1000);
  const DeviceMemory::Reservation large{.bytes = 5000, .buffers = 10};
  EXPECT_FALSE(memory.begin_load(large, kBesideWork));
  ASSERT_TRUE(memory.begin_load(large));
  EXPECT_FALSE(memory.begin_load(large));
  memory.end_load(large);
  ASSERT_TRUE(memory.resize_buffer(0, 500));
  memory.reduce(400);
  EXPECT_EQ(memory.budget(), 811u);
  memory.reduce(0);
  EXPECT_EQ(memory.budget(), 451u);
  memory.reduce(5000);
  EXPECT_EQ(memory.budget(), 451u);
  EXPECT_TRUE(memory.reduced());
  EXPECT_FALSE(memory.restore(100));  // 541 are hardly more
  EXPECT_EQ(memory.budget(), 451u);
  EXPECT_TRUE(memory.restore(400));
  EXPECT_EQ(memory.budget(), 811u);
  memory.reduce(0);
  EXPECT_TRUE(memory.restore(5000));
  EXPECT_EQ(memory.budget(), 1000u);
  EXPECT_FALSE(memory.reduced());
}

// The longest first, equal ones in their order; so are the pieces of those that are cut.
TEST(PackedTargets, AreSortedByLengthAndSoAreTheirPieces) {
  test_support::Random random(3);
  for (const int longest : {1, 300, 5'000, 70'000, 30'000'000}) {
    std::vector<std::uint32_t> length, start;
    for (int i = 0; i < 400; ++i) {
      length.push_back(static_cast<std::uint32_t>(random.chance(0.2)
                                                      ? random.integer(1, longest)
                                                      : random.integer(1, std::min(longest, 40))));
      start.push_back(static_cast<std::uint32_t>(7 * i));
    }
    const layout::PackedTargets packed = layout::index_targets({}, start, length);
    std::vector<std::uint32_t> order(length.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t i) { return length[i]; });
    EXPECT_EQ(packed.original, order) << longest;
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(packed.length[i], length[order[i]]);
      EXPECT_EQ(packed.start[i], start[order[i]]);
      EXPECT_EQ(packed.class_lengths[packed.length_class[i]], packed.length[i]);
    }
    if (longest > 100'000) continue;  // of so many pieces there is nothing more to learn
    const layout::WorkList list = layout::split_targets(packed, 64, 16);
    EXPECT_TRUE(std::ranges::is_sorted(list.items, std::greater<>(),
                                       [](const auto& item) { return item.rows; }));
    // Every row of every target, by pieces that overlap.
    std::vector<std::uint32_t> rows(length.size());
    for (const auto& item : list.items) rows[item.target] += item.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint32_t L = packed.length[i];
      const std::uint32_t pieces = L <= 64 ? 1 : (L - 64 + 47) / 48 + 1;
      EXPECT_EQ(rows[i], L + 16 * (pieces - 1)) << L;
    }
  }
}

TEST(BlockGroups, SegmentsGrowAndBeginSmallAgain) {
  const Settings settings{
      .devices = {0}, .segment_residues = 100, .segment_growth = 4, .largest_segment = 300};
  BlockGroups groups(settings);
  EXPECT_EQ(sizes(groups.add(block(1, 500), kAnyMemory, false)), Sizes{});  // no search has begun
  groups.begin(0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(sizes(groups.add(block(1, 60), kAnyMemory, false)), Sizes{});
    EXPECT_EQ(sizes(groups.add(block(2, 60), kAnyMemory, false)), Sizes{120});
    EXPECT_EQ(sizes(groups.add(block(3, 250), kAnyMemory, false)), Sizes{});
    EXPECT_EQ(sizes(groups.add(block(4, 60), kAnyMemory, false)), Sizes{310});
    EXPECT_EQ(sizes(groups.add(block(5, 290), kAnyMemory, false)), Sizes{});
    EXPECT_EQ(sizes(groups.rest(kAnyMemory)), Sizes{290});
    EXPECT_EQ(sizes(groups.rest(kAnyMemory)), Sizes{});
    groups.begin(0);
  }
  groups.add(block(6, 10), kAnyMemory, false);
  EXPECT_EQ(groups.end().size(), 1u);
  EXPECT_EQ(sizes(groups.add(block(7, 500), kAnyMemory, false)), Sizes{});
}

TEST(BlockGroups, ADeviceWithoutWorkGetsASmallSegment) {
  const Settings settings{
      .devices = {0}, .segment_residues = 100, .segment_growth = 4, .largest_segment = 1000};
  BlockGroups groups(settings);
  groups.begin(0);
  EXPECT_EQ(sizes(groups.add(block(1, 100), kAnyMemory, false)), Sizes{100});
  EXPECT_EQ(sizes(groups.add(block(2, 90), kAnyMemory, true)), Sizes{});
  EXPECT_EQ(sizes(groups.add(block(3, 60), kAnyMemory, true)), Sizes{150});
  EXPECT_EQ(sizes(groups.add(block(4, 900), kAnyMemory, false)), Sizes{});
  EXPECT_EQ(sizes(groups.add(block(5, 100), kAnyMemory, false)), Sizes{1000});
}

TEST(BlockGroups, EachDeviceHasAsMuch) {
  const Settings settings{.devices = {0, 1}, .segment_residues = 100};
  BlockGroups groups(settings);
  groups.begin(0);
  for (std::uint64_t id = 1; id < 10; ++id)
    EXPECT_EQ(sizes(groups.add(block(id, 20), kAnyMemory, false)), Sizes{});
  EXPECT_EQ(sizes(groups.add(block(10, 20), kAnyMemory, false)), (Sizes{100, 100}));
  for (std::uint64_t id = 11; id < 14; ++id) groups.add(block(id, 20), kAnyMemory, false);
  EXPECT_EQ(sizes(groups.rest(kAnyMemory)), (Sizes{40, 20}));
  // Blocks without a residue are blocks, too.
  groups.add(block(14, 0), kAnyMemory, false);
  EXPECT_EQ(sizes(groups.rest(kAnyMemory)), Sizes{0});
}

TEST(BlockGroups, MemoryBoundsSegments) {
  Settings settings{.devices = {0}, .segment_residues = 1000};
  BlockGroups by_device(settings), by_host(settings);
  by_device.begin(0);
  EXPECT_EQ(sizes(by_device.add(block(1, 99), 400, false)), Sizes{});
  EXPECT_EQ(sizes(by_device.add(block(2, 1), 400, false)), Sizes{100});
  by_host.begin(200);
  EXPECT_EQ(sizes(by_host.add(block(1, 99), kAnyMemory, false)), Sizes{});
  EXPECT_EQ(sizes(by_host.add(block(2, 1), kAnyMemory, false)), Sizes{100});
  settings.vram = 400;
  BlockGroups by_user(settings);
  by_user.begin(0);
  EXPECT_EQ(sizes(by_user.add(block(1, 99), kAnyMemory, false)), Sizes{});
  EXPECT_EQ(sizes(by_user.add(block(2, 1), kAnyMemory, false)), Sizes{100});
}

// A board with a pair for each of these blocks, and segments of a block each.
class SegmentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    segments_.attach(board_, 0);
    for (BlockId id = 1; id <= 2; ++id) {
      BlockRef made = block(id, 50);
      kept_[id] = made.targets;
      board_.add_block(id);
      board_.open(kModel, id, made.targets);
      segments_.add(std::move(made));
    }
    for (auto& [id, targets] : kept_) seen_[id] = std::exchange(targets, nullptr);
  }
  // The host takes the pair and does it.
  void do_on_host(BlockId id) { ASSERT_NE(board_.take_for_host(kModel, id), nullptr); }
  bool held(BlockId id) const { return !seen_.at(id).expired(); }

  static constexpr ModelId kModel = 7;
  WorkBoard board_{[](ModelId, BlockId) {}};
  ChangeSignal changed_;
  Counters counters_;
  const Settings settings_{.devices = {0}, .segment_residues = 50, .segment_growth = 1};
  TargetStore segments_{settings_, counters_, changed_};
  ActiveDevice device_{1 << 30};
  std::map<BlockId, TargetsPtr> kept_;
  std::map<BlockId, std::weak_ptr<const TargetBlock>> seen_;
};

TEST_F(SegmentsTest, FinishedSegmentsAreDroppedBeforeTheyArePacked) {
  segments_.offer(device_, 0);
  do_on_host(1);
  segments_.offer(device_, 0);
  EXPECT_TRUE(held(1));  // it may be needed for other models
  segments_.set_streaming();
  EXPECT_FALSE(held(1));
  EXPECT_TRUE(held(2));
  do_on_host(2);
  segments_.offer(device_, 0);
  EXPECT_FALSE(held(2));
  EXPECT_EQ(segments_.take_to_pack(), nullptr);
}

TEST_F(SegmentsTest, NoMoreIsPackedThanIsUploaded) {
  const SegmentPtr first = segments_.take_to_pack();
  ASSERT_NE(first, nullptr);
  segments_.packed(first, std::make_shared<PackedSegment>(pack_segment(first->blocks)));
  EXPECT_EQ(segments_.take_to_pack(), nullptr);
  do_on_host(1);
  EXPECT_NE(segments_.take_to_pack(), nullptr);
}

// A lane may have been offered the whole before another one found that it does not fit.
TEST_F(SegmentsTest, OfASegmentThatDoesNotFitOnlyTheHalvesAreLoaded) {
  std::vector<BlockRef> both{block(3, 25), block(4, 25)};
  for (const BlockRef& made : both) {
    board_.add_block(made.id);
    board_.open(kModel, made.id, made.targets);
  }
  do_on_host(1);
  do_on_host(2);
  segments_.set_streaming();
  segments_.use_devices({&device_});
  for (BlockRef& made : both) segments_.add(std::move(made));
  const SegmentPtr whole = segments_.take_to_pack();
  ASSERT_NE(whole, nullptr);
  segments_.packed(whole, std::make_shared<PackedSegment>(pack_segment(whole->blocks)));
  ASSERT_EQ(segments_.offer(device_, 0).to_load, whole);
  const auto loading = segments_.begin_load(device_, whole, false);
  ASSERT_TRUE(loading);
  EXPECT_FALSE(segments_.did_not_fit(whole, 0));
  segments_.end_load(whole, *loading);
  EXPECT_FALSE(segments_.begin_load(device_, whole, false));
  for (const BlockId id : {3u, 4u}) {
    const SegmentPtr half = segments_.take_to_pack();
    ASSERT_NE(half, nullptr);
    ASSERT_EQ(half->blocks.size(), 1u);
    EXPECT_EQ(half->blocks.front().id, id);
  }
  EXPECT_EQ(segments_.take_to_pack(), nullptr);
}

TEST_F(SegmentsTest, NothingIsTakenBetweenTwoSearches) {
  do_on_host(1);
  EXPECT_TRUE(held(1));
  segments_.clear();
  EXPECT_FALSE(held(1));
  BlockRef late = block(3, 50);
  const std::weak_ptr<const TargetBlock> seen = late.targets;
  segments_.add(std::move(late));
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(segments_.take_to_pack(), nullptr);
}

// The starter of a session may set them while a search is being detached.
TEST(EngineState, QueuesOfDevicesThatComeLaterAreClosedAsWell) {
  EngineState engine{Settings{}};
  engine.open_queues(false);
  std::vector<std::unique_ptr<ActiveDevice>> devices;
  devices.push_back(std::make_unique<ActiveDevice>(1000));
  engine.set_devices(std::move(devices));
  DomainWorkPtr work = std::make_unique<DomainWork>();
  EXPECT_FALSE(engine.device(0)->domain_queue.put(work));
  engine.open_queues(true);
  EXPECT_TRUE(engine.device(0)->domain_queue.put(work));
}

}  // namespace
}  // namespace hmmjit::gpu
