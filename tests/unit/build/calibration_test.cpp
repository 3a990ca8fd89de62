// The calibration of imported models compared with hmmconvert's, bit for bit: its binary output has
// both the imported model and the six parameters as floats.
#include "build/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/hmm_file.hpp"
#include "tests/support/command.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

void expect_same(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.msv_mu, b.msv_mu);
  EXPECT_EQ(a.msv_lambda, b.msv_lambda);
  EXPECT_EQ(a.viterbi_mu, b.viterbi_mu);
  EXPECT_EQ(a.viterbi_lambda, b.viterbi_lambda);
  EXPECT_EQ(a.forward_tau, b.forward_tau);
  EXPECT_EQ(a.forward_lambda, b.forward_lambda);
}

TEST(Calibrate, EqualsHmmconvertOnHmmer2Models) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmconvert")) GTEST_SKIP() << "hmmconvert is not installed";
  int models = 0;
  for (const char* file :
       {"hmm_h2/example.hmm2", "hmm_h2/RREFam.hmm2", "hmm_versions/fn3_h2.hmm"}) {
    const auto path = shared / "data/edge" / file;
    const auto binary = test_support::output_of("hmmconvert -b '" + path.string() + "'");
    ASSERT_TRUE(binary) << path;
    HmmReader reader = HmmReader::open(open_memory_source("binary", *binary).value()).value();
    for (; models < 20; ++models) {
      const std::optional<Hmm> hmm = reader.next().value();
      if (!hmm) break;
      SCOPED_TRACE(hmm->name);
      EXPECT_FALSE(hmm->needs_calibration);
      expect_same(build::calibrate(*hmm).value(), hmm->calibration);
    }
  }
  EXPECT_GE(models, 5);
}

// Every residue gains a factor of 20 at every node: no distribution fits the scores of random
// targets.
TEST(Calibrate, OverflowingScoresCountAsTheLargest) {
  Hmm hmm = test_support::random_hmm(3, 80);
  std::ranges::fill(hmm.match, 1.0f);
  const Calibration calibration = build::calibrate(hmm).value();
  EXPECT_TRUE(std::isfinite(calibration.msv_mu));
  EXPECT_TRUE(std::isfinite(calibration.viterbi_mu));
  EXPECT_GT(calibration.msv_mu, 5.0f);
}

TEST(Calibrate, RefusesTooFewTargets) {
  const auto calibration =
      build::calibrate(test_support::random_hmm(3, 12), {.viterbi_targets = 1});
  ASSERT_FALSE(calibration);
  EXPECT_EQ(calibration.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace hmmjit
