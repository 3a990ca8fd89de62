#include "reference/describe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

using testing::HasSubstr;

TEST(DescribeScores, RealTarget) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto model =
      make_search_model(test_support::read_models(shared / "data/hmm/hmmer/globins4.hmm").at(0));
  const auto targets = test_support::read_sequences(shared / "data/seq/small/rndseq400-10.fa");
  const std::string text = reference::describe_scores(*model, targets.at(0).residues);
  for (const char* line :
       {"length 400\n", "null_nats -0x1.bf889ep+2\n", "bias_nats -0x1.d37b8p+2\n",
        "ssv_status score\n", "ssv_nats -0x1.d91274p+3\n", "msv_nats -0x1.d91274p+3\n",
        "viterbi_nats -0x1.e6de54p+3\n", "forward_nats -0x1.1c7d0ep+3\n",
        "forward_scaling 0x0p+0\n", "backward_own_scale false\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(reference::describe_scores(*model, {}), "length 0\n");
}

}  // namespace
}  // namespace hmmjit
