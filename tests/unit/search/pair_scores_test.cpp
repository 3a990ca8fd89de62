// The scores of single pairs, against the filters of a search.
#include "search/pair_scores.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "core/threads.hpp"
#include "search/host_filters.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

TEST(PairScores, DecideLikeASearch) {
  const FlushToZeroScope flush;
  std::uint64_t seed = 70;
  std::map<std::string_view, int> rejected;
  int scored = 0;
  const FilterOptions all[] = {
      {}, {0.3, 0.2, 0.1, true}, {0.5, 0.6, 0.3, false}, FilterOptions::max_sensitivity()};
  for (const test_support::ModelKind kind : test_support::kAllModelKinds) {
    const PreparedModel model(begin_search_model(test_support::random_hmm(++seed, 60, kind)));
    TargetBlock block;
    for (const test_support::TargetKind target : test_support::kAllTargetKinds) {
      for (const int L : {0, 1, 60, 300}) {
        block.begin_target("t", "", "");
        block.append(test_support::random_target(++seed, L, target, model.hmm()));
        block.end_target();
      }
    }
    for (const FilterOptions& options : all) {
      FilterOutput want;
      cpu::FilterScratch scratch;
      ASSERT_TRUE(HostFilters(model, options).run(block, 0, block.size(), scratch, want));
      auto survivor = want.survivors.begin();
      for (std::uint32_t i = 0; i < block.size(); ++i) {
        const auto pair = score_pair(model, block[i], options, {});
        ASSERT_TRUE(pair);
        const FilterStep* by = pair->rejected_by();
        const bool survives = survivor != want.survivors.end() && survivor->index == i;
        EXPECT_EQ(survives, !pair->steps.empty() && (by == nullptr || by->name == "forward"));
        survivor += survives;
        if (pair->steps.empty()) continue;
        ++rejected[by == nullptr ? "passes" : by->name];
        scored += pair->score.has_value();
      }
      EXPECT_EQ(survivor, want.survivors.end());
    }
  }
  EXPECT_EQ(rejected.size(), 5u);
  EXPECT_GT(scored, 0);
}

}  // namespace
}  // namespace hmmjit
