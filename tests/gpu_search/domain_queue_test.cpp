// The queue of the domain stage: nothing is taken twice or forgotten, whoever takes it.
#include "gpu/domain_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ranges>
#include <vector>

#include "gpu/active_models.hpp"
#include "pairs_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

// Launches that have room, or threads, take every target of a mixture of chains once.
TEST(DomainQueue, GivesEveryTargetOnce) {
  KernelScript script;
  Chains chains(scripted_kernels(script));
  std::vector<gpu::ActiveModelPtr> models;
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  test_support::Random random(11);
  for (const int M : {60, 200, 1100}) {  // the last has a kernel of its own for envelopes
    const auto model = std::make_shared<const SearchModel>(model_of(M));
    chains.planned(*model);
    models.push_back(std::make_shared<gpu::ActiveModel>(static_cast<ModelId>(M), model));
    EXPECT_EQ(models.back()->refresh(chains.kernels), gpu::ActiveModel::State::kReady);
  }
  std::vector<std::vector<Residue>> residues;
  for (int i = 0; i < 50; ++i)
    residues.emplace_back(static_cast<std::size_t>(10 + 7 * i), static_cast<Residue>(i % 20));
  blocks.push_back(block_of(residues, 0));
  const std::shared_ptr<gpu::DeviceTargets> targets = chains.upload(blocks);
  const std::vector<std::uint32_t>& length = targets->packed().targets.length;
  for (int round = 0; round < 20; ++round) {
    gpu::DomainQueue queue;
    // By chain and target, how often they were taken; a target's index is its own.
    std::map<const gpu::FilteredChain*, std::vector<int>> taken;
    std::map<const gpu::FilteredChain*, std::vector<std::uint32_t>> target;
    std::vector<std::shared_ptr<gpu::FilteredChain>> all;
    const int count = random.integer(1, 40);
    std::size_t sum = 0;
    std::uint64_t cells_left = 0;
    for (int c = 0; c < count; ++c) {
      auto work = std::make_unique<gpu::DomainWork>();
      work->chain = all.emplace_back(std::make_shared<gpu::FilteredChain>());
      work->chain->model = models[static_cast<std::size_t>(random.integer(0, 2))];
      work->request.model = work->chain->model->search();
      work->request.targets = targets;
      const int n =
          random.integer(0, 3) == 0 ? random.integer(5'000, 20'000) : random.integer(1, 900);
      for (int i = 0; i < n; ++i)
        work->passed.push_back(
            {0, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(random.integer(0, 49))});
      taken[work->chain.get()].resize(static_cast<std::size_t>(n));
      for (const gpu::PassedTarget& p : work->passed) target[work->chain.get()].push_back(p.target);
      sum += static_cast<std::size_t>(n);
      for (const gpu::PassedTarget& p : work->passed)
        cells_left += std::uint64_t{length[p.target]} *
                      static_cast<std::uint64_t>(work->request.model->hmm.M);
      EXPECT_TRUE(queue.put(work));
      EXPECT_EQ(queue.chains(), static_cast<std::size_t>(c + 1));
    }
    EXPECT_EQ(queue.load().domain_targets, sum);
    EXPECT_EQ(queue.load().domain_cells, cells_left);
    const auto count_part = [&](const gpu::DomainWork& part) {
      EXPECT_EQ(part.request.targets, targets);
      EXPECT_EQ(part.request.model, part.chain->model->search());
      EXPECT_FALSE(part.passed.empty());
      for (const gpu::PassedTarget& p : part.passed) ++taken[part.chain.get()][p.index];
      EXPECT_TRUE(std::ranges::is_sorted(part.passed, {}, &gpu::PassedTarget::index));
      sum -= part.passed.size();
      cells_left -= gpu::cells_of(part);
      --part.chain->parts;
    };
    while (queue.chains() > 0) {
      if (random.integer(0, 2) == 0) {
        const auto cells = static_cast<std::uint64_t>(random.integer(1, 40'000'000));
        const gpu::DomainWorkPtr part = queue.take_longest(cells);
        ASSERT_NE(part, nullptr);
        const auto by_length = [&](const gpu::PassedTarget& p) { return length[p.target]; };
        const std::uint64_t least =
            std::ranges::min(part->passed | std::views::transform(by_length));
        const auto M = static_cast<std::uint64_t>(part->request.model->hmm.M);
        EXPECT_LT(gpu::cells_of(*part), cells + M * 400);
        if (part->chain->parts > 1) {
          EXPECT_GE(gpu::cells_of(*part), std::min(cells, least * M));
        }
        count_part(*part);
        // The rest of the chain is not longer.
        const std::uint32_t last =
            std::ranges::max(part->passed, {}, &gpu::PassedTarget::target).target;
        const std::vector<int>& times = taken[part->chain.get()];
        for (std::size_t i = 0; i < times.size(); ++i) {
          if (times[i] == 0) {
            EXPECT_GE(target[part->chain.get()][i], last);
          }
        }
      } else {
        double until = 0;
        const auto batch = queue.take_launch({}, false, until);
        ASSERT_FALSE(batch.empty());
        EXPECT_LE(batch.size(), gpu::DomainStage::kMostRequests);
        std::size_t size = 0;
        for (const gpu::DomainWorkPtr& part : batch) {
          EXPECT_LE(part->passed.size(), gpu::DomainStage::kMostTargets);
          EXPECT_EQ(part->chain->model == models[2], batch.front()->chain->model == models[2]);
          size += part->passed.size();
          count_part(*part);
        }
        EXPECT_LE(size, gpu::DomainStage::kMostLaunchTargets);
      }
      EXPECT_EQ(queue.load().domain_targets, sum);
      EXPECT_EQ(queue.load().domain_cells, cells_left);
    }
    EXPECT_EQ(cells_left, 0u);
    for (const auto& [chain, times] : taken) {
      EXPECT_THAT(times, testing::Each(1));
      EXPECT_EQ(chain->parts, 0);
    }
  }
}

}  // namespace
}  // namespace hmmjit::tests
