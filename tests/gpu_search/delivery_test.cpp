// The results of a chain of filters and of the domain stage reach the owner of the search once,
// whoever delivers the parts of it and however they meet.
#include "gpu/delivery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/active_models.hpp"
#include "gpu/domain_queue.hpp"
#include "pairs_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

constexpr ModelId kModel = 3;

/// Counts deliveries. `at_once`: the number of early deliveries that wait for each other.
class CountingOwner final : public gpu::Client {
 public:
  void deliver(ModelId model, std::vector<gpu::Delivery> pairs, bool early) override {
    EXPECT_EQ(model, kModel);
    if (early) return deliver_early(pairs);
    const std::lock_guard lock(mutex_);
    for (gpu::Delivery& pair : pairs) {
      ++ended[pair.claim.block()];
      count(pair.claim.targets(), pair.found);
      pair.claim.finish();
    }
  }
  void stopped(const Error&, bool) override {}

  int at_once = 0;
  // By block and index: how often a target has come, as one that passed or is open.
  std::map<std::pair<const TargetBlock*, std::uint32_t>, int> passed, open;
  std::map<BlockId, int> ended;

 private:
  void deliver_early(const std::vector<gpu::Delivery>& pairs) {
    std::unique_lock lock(mutex_);
    for (const gpu::Delivery& pair : pairs) {
      EXPECT_FALSE(pair.claim);
      count(pair.targets, pair.found);
    }
    ++early_;
    met_.notify_all();
    met_.wait(lock, [&] { return early_ >= at_once; });
  }
  void count(const TargetsPtr& targets, const gpu::FilteredBlock& block) {
    for (const std::uint32_t index : block.passed) ++passed[{targets.get(), index}];
    for (const gpu::MsvSurvivor& target : block.open) ++open[{targets.get(), target.index}];
  }
  std::mutex mutex_;
  std::condition_variable met_;
  int early_ = 0;
};

class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest() {
    model_ = std::make_shared<const SearchModel>(
        *make_search_model(test_support::random_hmm(5, 40, test_support::ModelKind::kTypical)));
    for (BlockId id = 0; id < 3; ++id) {
      std::vector<std::vector<Residue>> residues(kTargets, std::vector<Residue>(30, Residue(id)));
      blocks_.push_back(block_of(residues, id * kTargets));
      board_.add_block(id);
      board_.open(kModel, id, blocks_.back());
    }
    calls_.attach(owner_, board_, {});
  }

  // A chain over three blocks, the last of which somebody else has: of each other block five
  // targets are open and the rest passed.
  gpu::DomainWorkPtr chain() {
    EXPECT_NE(board_.take_for_host(kModel, 2), nullptr);
    auto work = std::make_unique<gpu::DomainWork>();
    work->chain = std::make_shared<gpu::FilteredChain>();
    work->chain->use = calls_.use();
    work->chain->model = std::make_shared<gpu::ActiveModel>(kModel, model_);
    gpu::CascadeResult found;
    found.blocks.resize(blocks_.size());
    for (std::uint32_t b = 0; b < 2; ++b) {
      for (std::uint32_t i = 0; i < kTargets; ++i) {
        if (i < 5) {
          found.blocks[b].open.push_back({i});
        } else {
          found.blocks[b].passed.push_back(i);
          found.passed_targets.push_back({b, i, b * kTargets + i});
        }
      }
    }
    gpu::take_found(
        *work, std::move(found),
        board_.claim(kModel, board_.make_segment({BlockId{0}, BlockId{1}, BlockId{2}})));
    return work;
  }

  // Everything has come once.
  void expect_all_once() {
    EXPECT_EQ(owner_.passed.size(), 2u * (kTargets - 5));
    EXPECT_EQ(owner_.open.size(), 2u * 5);
    for (const auto* counts : {&owner_.passed, &owner_.open}) {
      for (const auto& [target, times] : *counts) EXPECT_EQ(times, 1) << target.second;
    }
    EXPECT_THAT(owner_.ended, testing::ElementsAre(std::pair(0, 1), std::pair(1, 1)));
  }

  static constexpr std::uint32_t kTargets = 40;
  std::shared_ptr<const SearchModel> model_;
  std::vector<std::shared_ptr<TargetBlock>> blocks_;
  WorkBoard board_{[](ModelId, BlockId) { ADD_FAILURE() << "a pair fell back to the CPU"; }};
  CountingOwner owner_;
  gpu::ClientCalls calls_;
};

// The targets at those places of the work become a part of their own.
gpu::DomainWorkPtr part_of(gpu::DomainWork& work, std::size_t first, std::size_t count) {
  std::vector<bool> taken(work.passed.size());
  std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(first), count, true);
  return gpu::split_off(work, taken);
}

TEST_F(DeliveryTest, WhatIsOpenComesBefore) {
  const gpu::DomainWorkPtr work = chain();
  gpu::deliver_open(*work->chain);
  EXPECT_EQ(owner_.open.size(), 10u);
  EXPECT_TRUE(owner_.passed.empty());
  EXPECT_EQ(gpu::deliver(*work), 2u);
  expect_all_once();
}

TEST_F(DeliveryTest, TheLastPartEndsThePairs) {
  const gpu::DomainWorkPtr work = chain(), part = part_of(*work, 20, 30);
  EXPECT_EQ(gpu::deliver(*work), std::nullopt);
  EXPECT_TRUE(owner_.ended.empty());
  EXPECT_EQ(gpu::deliver(*part), 2u);
  expect_all_once();
}

class DeliveryOfParts : public DeliveryTest, public testing::WithParamInterface<std::size_t> {};

// Each of them finds that there are others, so that none is the last when it looks.
TEST_P(DeliveryOfParts, ThatAreDeliveredAtTheSameTimeComeOnce) {
  const std::size_t parts = GetParam();
  std::vector<gpu::DomainWorkPtr> work;
  work.push_back(chain());
  while (work.size() < parts) work.push_back(part_of(*work.front(), 3 * work.size(), 8));
  owner_.at_once = static_cast<int>(parts);
  std::vector<std::optional<std::size_t>> ended(parts);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < parts; ++i)
    threads.emplace_back([&, i] { ended[i] = gpu::deliver(*work[i]); });
  threads.clear();
  EXPECT_EQ(std::ranges::count(ended, std::optional<std::size_t>(2)), 1);
  expect_all_once();
}
INSTANTIATE_TEST_SUITE_P(Some, DeliveryOfParts, testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace hmmjit::tests
