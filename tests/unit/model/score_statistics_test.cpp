#include "model/score_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hmmjit {
namespace {

TEST(ScoreStatistics, GumbelSurvival) {
  EXPECT_DOUBLE_EQ(gumbel_survival(-8.0, -8.0, 0.7), 1.0 - std::exp(-1.0));
  EXPECT_EQ(gumbel_survival(INFINITY, -8.0, 0.7), 0.0);
  EXPECT_EQ(gumbel_survival(-INFINITY, -8.0, 0.7), 1.0);
  // Small tails keep all digits: P = e^-y.
  EXPECT_EQ(gumbel_survival(100.0, 0.0, 0.5), std::exp(-50.0));
  // Both formulas agree at the switch.
  const double switch_at = -std::log(5e-9);
  EXPECT_NEAR(gumbel_survival(switch_at - 1e-6, 0, 1) / gumbel_survival(switch_at + 1e-6, 0, 1), 1,
              1e-5);
  // A model without statistics passes nothing.
  EXPECT_EQ(gumbel_survival(500.0, -99999.0, -99999.0), 1.0);
}

TEST(ScoreStatistics, ExponentialTail) {
  EXPECT_EQ(exponential_survival(-5.0, -4.0, 0.7), 1.0);
  EXPECT_EQ(exponential_log_survival(-5.0, -4.0, 0.7), 0.0);
  EXPECT_EQ(exponential_survival(-4.0, -4.0, 0.7), 1.0);
  EXPECT_DOUBLE_EQ(exponential_survival(6.0, -4.0, 0.7), std::exp(-7.0));
  EXPECT_DOUBLE_EQ(exponential_log_survival(6.0, -4.0, 0.7), -7.0);
  EXPECT_EQ(exponential_survival(INFINITY, -4.0, 0.7), 0.0);
}

TEST(ScoreStatistics, FlushedExponential) {
  EXPECT_EQ(e_value(-7.0), std::exp(-7.0));
  EXPECT_GT(e_value(-708.3), 0.0);
  EXPECT_EQ(e_value(-708.5), 0.0);  // subnormal
  EXPECT_EQ(e_value(-800.0), 0.0);
  EXPECT_EQ(e_value(-7.0, 3), std::exp(-7.0) * 3);
  EXPECT_EQ(e_value(-20.0, 1e-300), 0.0);  // the product is subnormal
  EXPECT_EQ(e_value(-708.5, 1e6), 0.0);
}

TEST(ScoreStatistics, BitsAreRoundedOnce) {
  EXPECT_EQ(nats_to_bits(0.69314718f), 1.0f);
  EXPECT_EQ(nats_to_bits(-3.5f), static_cast<float>(-3.5 / 0.69314718055994529));
  EXPECT_EQ(nats_to_bits(std::numeric_limits<float>::infinity()), INFINITY);
}

// Below the band P is above the limit, above the band it is below.
TEST(ScoreStatistics, BandsLieAroundTheDecidingScore) {
  for (const double limit : {0.02, 1e-3, 1e-5}) {
    const ScoreBand gumbel = gumbel_band(-8.0, 0.7, limit);
    EXPECT_GT(gumbel_survival(static_cast<double>(gumbel.rejects), -8.0, 0.7), limit);
    EXPECT_LT(gumbel_survival(static_cast<double>(gumbel.passes), -8.0, 0.7), limit);
    const ScoreBand exponential = exponential_band(-4.0, 0.7, limit);
    EXPECT_GT(exponential_survival(static_cast<double>(exponential.rejects), -4.0, 0.7), limit);
    EXPECT_LT(exponential_survival(static_cast<double>(exponential.passes), -4.0, 0.7), limit);
    EXPECT_LT(exponential.passes - exponential.rejects, 0.1f);
  }
}

}  // namespace
}  // namespace hmmjit
