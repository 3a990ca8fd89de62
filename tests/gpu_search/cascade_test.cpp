// One chain of kernels: which of them it runs, and what it makes of impossible answers.
#include "gpu/cascade.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/gate_params.h"
#include "common/late_params.h"
#include "host_kernels.hpp"
#include "layout/word_tables.hpp"
#include "pairs_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

class CascadeTest : public testing::Test {
 protected:
  CascadeTest() : chains_(scripted_kernels(script_)) {
    const auto run = chains_.fake.on_launch;
    chains_.fake.on_launch = [this, run](const FakeLaunch& launch) {
      const int code = run(launch);
      if (spoil_) spoil_(launch);
      return code;
    };
  }
  int launched(const std::string& start) const {
    int sum = 0;
    for (const auto& [kernel, count] : chains_.launches)
      sum += kernel.starts_with(start) ? count : 0;
    return sum;
  }

  KernelScript script_;
  Chains chains_;
  std::function<void(const FakeLaunch&)> spoil_;  // after each kernel
};

// The longest models take several launches of the SSV kernel, a tile of the positions each.
TEST_F(CascadeTest, TiledModelsAreSearchedFromTheFirstPositionToTheLast) {
  const SearchModel model = model_of(9'200);
  std::vector<std::vector<Residue>> targets;
  for (const int last : {100, 4'600, 9'200}) {
    for (const double identity : {0.3, 0.4, 0.8})
      targets.push_back(fragment_of(model.hmm, 3, last - 99, last, identity));
  }
  EXPECT_GE(chains_.compare(model, {block_of(targets)}), 3u);
  EXPECT_GE(launched("ssv_"), 2);
}

// The Viterbi kernels are right for usual models only; for others the CPU does their part.
TEST_F(CascadeTest, ViterbiKernelsRunOnlyWhereTheirPreconditionsHold) {
  const SearchModel usual = model_of(80);
  const auto targets = chains_.upload({block_of(targets_for(usual.hmm, 5))});
  ASSERT_TRUE(chains_.run(usual, *targets, {true}));
  EXPECT_EQ(launched("viterbi_wavefront"), 1);
  EXPECT_EQ(launched("viterbi_"), 2);

  for (const bool entry : {true, false}) {
    SearchModel odd = usual;
    if (entry) {
      odd.words.entry.back() =
          static_cast<std::int16_t>(static_cast<int>(hmmjit_device::kWordLeastEntry) - 1);
    } else {
      odd.words.match.back() =
          static_cast<std::int16_t>(static_cast<int>(hmmjit_device::kWordMostScore) + 1);
    }
    chains_.launches.clear();
    ASSERT_TRUE(chains_.run(odd, *targets, {true}));
    EXPECT_EQ(launched("viterbi_wavefront"), 0) << entry;
    EXPECT_EQ(launched("viterbi_"), 1) << entry;
  }

  SearchModel gain = usual;
  gain.words.mm_in.back() = 1;  // a transition that raises the score
  chains_.launches.clear();
  const auto result = chains_.run(gain, *targets, {true});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(launched("viterbi_"), 0);
  EXPECT_EQ(result->viterbi_targets, 0u);
  EXPECT_GT(result->open, 0u);
}

// The fake driver's events are a millisecond apart: a begin from the begin before, ends from
// theirs.
TEST_F(CascadeTest, ChainsAreTimedFromTheChainBefore) {
  const SearchModel model = model_of(80);
  const auto targets = chains_.upload({block_of(targets_for(model.hmm, 5))});
  for (const double begin : {1.0, 2.0, 3.0}) {
    const auto result = chains_.run(model, *targets, {true});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->begin, begin);
    EXPECT_THAT(result->end, testing::Each(begin + 1));
  }
}

// A list has as many entries as there are targets at most. A longer one is damage, whoever reads
// it.
TEST_F(CascadeTest, ImpossibleCountsAreAFault) {
  namespace dev = hmmjit_device;
  const SearchModel model = model_of(80);
  const auto targets = chains_.upload({block_of(targets_for(model.hmm, 5))});
  const auto n = static_cast<dev::u32>(targets->packed().targets.size());
  for (const dev::u32 more : {0u, 1u, 0x7ffffffeu}) {
    const std::vector<std::function<void(const FakeLaunch&)>> counters{
        [&](const FakeLaunch& launch) {
          if (launch.kernel.starts_with("viterbi_lane"))
            static_cast<const dev::WordFilterParams*>(launch.parameters)->counters->flagged =
                n + more;
        },
        [&](const FakeLaunch& launch) {
          const auto* const p = static_cast<const dev::GateParams*>(launch.parameters);
          if (launch.kernel.starts_with("gate") && p->stage == dev::kAfterForward)
            p->counters->viterbi = n + more;
        },
        [&](const FakeLaunch& launch) {
          const auto* const p = static_cast<const dev::GateParams*>(launch.parameters);
          if (launch.kernel.starts_with("gate") && p->stage == dev::kAfterForward)
            p->counters->forward = n + more;
        }};
    for (std::size_t i = 0; i < counters.size(); ++i) {
      spoil_ = counters[i];
      const auto result = chains_.run(model, *targets, {true});
      EXPECT_EQ(result.has_value(), more == 0) << i << ' ' << more;
      if (!result) {
        const auto lists = {"flagged", "viterbi", "forward"};
        EXPECT_THAT(result.error().message,
                    testing::HasSubstr(
                        fmt::format("({} of {} targets in {})", n + more, n, lists.begin()[i])));
        EXPECT_THAT(result.error().where, testing::HasSubstr(i == 0 ? "viterbi.wave" : "gate"));
      }
    }
  }
}

}  // namespace
}  // namespace hmmjit::tests
