// Libraries of mixed model lengths. Models of about one length share kernels, and which of them
// comes first, from where its kernels come and when, is chance: no answer may depend on it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "host_kernels.hpp"
#include "pairs_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using gpu::Link;

constexpr int kLongest = 3600;

// Lengths next to which one kernel gives way to another: those of the first and finer kernels, of
// rows, of the planner's classes about the first two.
std::vector<int> lengths_about_edges() {
  std::set<int> out{1, 2, 3, 5, 17, kLongest};
  for (const int edge : {32,  48,  64,   96,   128,  192,  240,  256,  384,  512, 704,
                         768, 896, 1024, 1280, 1408, 1536, 2048, 2560, 3072, 3584}) {
    for (const int by : {-1, 0, 1}) out.insert(edge + by);
  }
  for (const int M : {1088, 1151, 1152, 1291, 1326, 1358, 1470, 1700, 1900, 2300, 2800, 3300})
    out.insert(M);
  return {out.begin(), out.end()};
}

// Lengths dense about every edge, all targets of targets_for(), shuffled.
TEST(MixedLengths, PairsAreTheCpusAtEveryEdge) {
  const std::vector<int> lengths = lengths_about_edges();
  std::size_t passed = 0, open = 0, survivors = 0;
  for (const bool cached : {false, true}) {
    KernelScript script;
    script.fate = always(cached ? KernelScript::kCached : KernelScript::kCompiled);
    Chains chains(scripted_kernels(script));
    std::vector<int> order = lengths;
    test_support::Random random(cached ? 5 : 6);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.next() % i]);
    std::vector<SearchModel> models;
    for (const int M : order) {
      // Half of the lengths from either source: what differs is which kernels there are.
      models.push_back(model_of(M));
      chains.planned(models.back());
    }
    std::size_t turn = cached ? 0 : 1;
    for (const SearchModel& model : models) {
      if (++turn % 2 == 0) continue;
      passed += chains.compare(model, {block_of(targets_for(model.hmm, 1))});
    }
    open += chains.opened;
    survivors += chains.survivors;
  }
  EXPECT_GT(passed, 10 * lengths.size());
  EXPECT_LT(open, survivors / 20);
}

// Every stage's kernel in turn is late, and fails or comes in the end: what a chain does without it
// is left to the CPU, what it does with it is right.
TEST(MixedLengths, PairsAreTheCpusWhileACompileIsLateOrFails) {
  const std::vector<int> lengths{60, 1060, 1358};
  std::vector<SearchModel> models;
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  for (const int M : lengths) {
    models.push_back(model_of(M));
    blocks.push_back(block_of(targets_for(models.back().hmm, 2)));
  }
  using Variant = std::pair<plan::Stage, std::string_view>;
  for (const auto& [stage, variant] :
       {Variant{plan::Stage::kMsv, ""}, Variant{plan::Stage::kBias, ""},
        Variant{plan::Stage::kGate, ""}, Variant{plan::Stage::kViterbi, "wavefront"},
        Variant{plan::Stage::kViterbi, "lane_scan"}, Variant{plan::Stage::kForward, ""}}) {
    for (const bool well : {true, false}) {
      KernelScript script;
      script.fate = [&, stage, variant](const plan::Plan& plan) {
        const bool late =
            plan.stage == stage && (variant.empty() || tested(plan).variant->name == variant);
        return late ? KernelScript::kLate : KernelScript::kCached;
      };
      Chains chains(scripted_kernels(script));
      for (std::size_t i = models.size(); i-- > 0;) chains.planned(models[i]);
      const bool decides =
          stage != plan::Stage::kMsv && stage != plan::Stage::kForward && variant != "wavefront";
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < models.size(); ++i) {
          chains.compare(models[i], {blocks[i]});
          const auto state = chains.kernels.state(chains.planned(models[i])).kind;
          if (decides || round > 0) {
            EXPECT_EQ(state, round == 0 ? gpu::ChainState::kPending : gpu::ChainState::kReady);
          }
          const auto ready = chains.ready(models[i]);
          const bool there = std::ranges::any_of(*ready, [&](const gpu::ReadyKernel& kernel) {
            return kernel && kernel.candidate().variant->stage == stage &&
                   (variant.empty() || kernel.candidate().variant->name == variant);
          });
          // No wavefront kernel takes more than 1,280 positions at once.
          const bool planned = variant != "wavefront" || lengths[i] <= 1280;
          EXPECT_EQ(there, round == 1 && well && planned);
        }
        script.finish(well);
      }
    }
  }
}

// More on each list than comes with the first download, in blocks of which some are others' to do;
// and without the kernels that shorten the lists, which then take 8 KB more than the host's buffer.
TEST(MixedLengths, LongListsAreComplete) {
  const SearchModel model = model_of(12);
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  for (std::uint64_t b = 0; b < 4; ++b) {
    std::vector<std::vector<Residue>> targets;
    for (std::uint64_t i = 0; i < 9'000; ++i)
      targets.push_back(
          i % 2 == 0 ? fragment_of(model.hmm, b * 10'000 + i, 1, 12, 0.9)
                     : test_support::random_target(
                           b * 10'000 + i, 20, test_support::TargetKind::kBackground, model.hmm));
    blocks.push_back(block_of(targets, b * 9'000));
  }
  using Stages = std::set<plan::Stage>;
  for (const Stages& missing :
       {Stages{}, Stages{plan::Stage::kGate}, Stages{plan::Stage::kViterbi},
        Stages{plan::Stage::kMsv}, Stages{plan::Stage::kMsv, plan::Stage::kGate}}) {
    for (const bool partly : {false, true}) {
      KernelScript script;
      script.fate = [&](const plan::Plan& plan) {
        return missing.contains(plan.stage) ? KernelScript::kFails : KernelScript::kCached;
      };
      Chains chains(scripted_kernels(script));
      const gpu::FilterLimits limits{.F1 = 0.9999, .F2 = 0.999, .F3 = 0.99};
      const std::vector<bool> claimed =
          partly ? std::vector<bool>{false, true, true, false} : std::vector<bool>{};
      const std::size_t passed = chains.compare(model, blocks, claimed, limits);
      if (missing.contains(plan::Stage::kGate)) {
        EXPECT_GT(chains.opened, partly ? 16'200u : 32'400u);
      } else {
        EXPECT_GT(passed, partly ? 7'560u : 15'120u);
      }
    }
  }
}

// A model in tiles takes one launch of the fast Viterbi kernel for each, with memory for what
// passes between them; where that is too much, the exact kernel does all.
TEST(MixedLengths, TheFastViterbiKernelTakesLongModelsInTilesWhereThereIsMemory) {
  for (const int M : {1358, 2300, 3100}) {
    const SearchModel model = model_of(M);
    const auto block = block_of(targets_for(model.hmm, 4));
    for (const std::size_t most_scratch : {std::size_t{1} << 30, std::size_t{0}}) {
      KernelScript script;
      Chains chains(scripted_kernels(script), most_scratch);
      EXPECT_GT(chains.compare(model, {block}), 0u);
      const auto fast = of_link(*chains.ready(model), Link::kViterbi),
                 exact = of_link(*chains.ready(model), Link::kExactViterbi);
      ASSERT_TRUE(fast && exact);
      const int tiles = plan::tiles_of(fast.candidate(), M);
      EXPECT_GT(tiles, 1);
      // Beyond 3,072 positions the exact one keeps its rows in device memory, and more of it.
      const bool in_memory = M > 3072;
      EXPECT_EQ(chains.launches["viterbi_wavefront"], most_scratch > 0 || in_memory ? tiles : 0);
      const std::string name = in_memory ? "viterbi_row_scan" : "viterbi_lane_scan";
      EXPECT_EQ(exact.candidate().variant->entry_name, name);
      EXPECT_EQ(chains.launches[name], 1);
    }
  }
}

// Kernels of a shorter model, which would give wrong results, are refused.
TEST(MixedLengths, KernelsThatCoverTooLittleAreRefused) {
  KernelScript script;
  Chains chains(scripted_kernels(script));
  const SearchModel longer = model_of(300), shorter = model_of(100);
  const auto targets = chains.upload({block_of(targets_for(longer.hmm, 3))});
  const auto small = chains.ready(shorter), large = chains.ready(longer);
  ASSERT_TRUE(small && large);
  ASSERT_TRUE(chains.run(longer, *targets, *large, {true}));
  for (const Link link : {Link::kSsv, Link::kMsv, Link::kViterbi, Link::kExactViterbi,
                          Link::kForward, Link::kFineSsv}) {
    auto mixed = *large;
    if (link == Link::kSsv) mixed[static_cast<std::size_t>(Link::kFineSsv)] = {};
    mixed[static_cast<std::size_t>(link)] = of_link(*small, link);
    EXPECT_FALSE(chains.run(longer, *targets, mixed, {true})) << static_cast<int>(link);
  }
}

}  // namespace
}  // namespace hmmjit::tests
