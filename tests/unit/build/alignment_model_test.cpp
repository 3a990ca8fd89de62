// Weights and text of models of alignments where HMMER's are known.
// tests/scenario/builder_test.py compares whole models.
#include "build/alignment_model.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "build/hmm_writer.hpp"
#include "build/priors.hpp"
#include "build/row_weights.hpp"
#include "build/sequence_model.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

// Weights of `hmmbuild --wpb -O` of HMMER 3.4, with more digits. A row that spans less than half of
// the columns is a fragment, whose outer gaps do not count.
TEST(RowWeights, AFragmentSpansLessThanHalf) {
  MultipleAlignment alignment;
  alignment.alphabet = &amino_alphabet();
  alignment.columns = 8;
  alignment.row_names = {"whole", "part"};
  const auto weights = [&](const std::string& part) {
    alignment.residues = test_support::digitise("ACDEFGHI" + part);
    return build::position_based_weights(alignment, false);
  };
  EXPECT_EQ(weights("ACDE----"), (std::vector<double>{1.0, 1.0}));
  const std::vector<double> of_fragment = weights("ACD-----");
  EXPECT_NEAR(of_fragment[0], 1.238, 0.001);
  EXPECT_NEAR(of_fragment[1], 0.762, 0.001);
}

// Right-aligned, as by printf, for models that cannot emit their calibration targets.
TEST(HmmText, InfiniteStatisticsAreWrittenAsHmmbuildDoes) {
  const std::vector<Residue> residues = {0, 1, 2, 3};
  const auto system = build::make_score_system(build::find_matrix("BLOSUM62").value(), 0.02, 0.4);
  auto built = build::build_from_sequence(system.value(), "q", residues);
  built.hmm.calibration = {};
  built.hmm.calibration.msv_mu = -std::numeric_limits<float>::infinity();
  built.hmm.calibration.msv_lambda = 242.4528f;
  std::string text;
  build::append_hmm_text(text, built, "hmmjit", "-");
  EXPECT_NE(text.find("\nSTATS LOCAL MSV          -inf 242.45280\n"), std::string::npos) << text;
}

// Values of the reference.
TEST(Priors, HelperValues) {
  EXPECT_EQ(build::log_gamma(0.002184), 0x1.88059429e95cep+2);
  EXPECT_EQ(build::log_gamma(0.5), 0x1.250d048cb808p-1);
  EXPECT_EQ(build::log_gamma(1), -0x1.c214p-33);
  EXPECT_EQ(build::log_gamma(10.25), 0x1.abc6d9940877bp+3);
  EXPECT_EQ(build::log_gamma(1000.5), 0x1.714ac96c9d4f2p+12);
  std::vector<float> counts(20, 0.0f);
  counts[0] = 1.5f;
  counts[9] = 0.25f;
  build::mixture_priors(amino_alphabet()).match.mean_posterior(counts);
  EXPECT_EQ(counts[0], 0x1.c2cebcp-2f);
  EXPECT_EQ(counts[9], 0x1.f8c76ep-4f);
  EXPECT_EQ(counts[19], 0x1.a33cf6p-7f);
  std::vector<float> transitions = {2, 0, 1};
  build::mixture_priors(amino_alphabet()).match_transition.mean_posterior(transitions);
  EXPECT_EQ(transitions, (std::vector<float>{0x1.74fc7ap-1f, 0x1.db0c12p-8f, 0x1.0e9adcp-2f}));
}

}  // namespace
}  // namespace hmmjit
