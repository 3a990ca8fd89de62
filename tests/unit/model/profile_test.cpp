#include "model/profile.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

// The exponential of odds profiles, seen through the only entry score of a model.
float vector_exp(float x) {
  Profile profile;
  profile.M = 1;
  profile.alphabet = &amino_alphabet();
  profile.match.resize(2 * static_cast<std::size_t>(amino_alphabet().Kp));
  profile.entry = {0.0f, x};
  for (std::vector<float>& scores : profile.transition) scores.resize(2);
  return make_odds_profile(profile).entry[0];
}

TEST(VectorExp, LimitsAndAccuracy) {
  EXPECT_EQ(vector_exp(-INFINITY), 0.0f);
  EXPECT_EQ(vector_exp(INFINITY), INFINITY);
  EXPECT_EQ(vector_exp(88.4f), INFINITY);
  EXPECT_EQ(vector_exp(-88.4f), 0.0f);
  EXPECT_EQ(vector_exp(-88.3762626647949f), 0.0f);
  EXPECT_TRUE(std::isnan(vector_exp(std::nanf(""))));
  for (float x = -87.0f; x < 88.0f; x += 0.0137f) {
    const double exact = std::exp(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(vector_exp(x)) / exact, 1.0, 2.5e-7) << x;
  }
}

TEST(LengthModel, LongTargetsHaveAFiniteNullScore) {
  for (const int L : {1, (1 << 24) - 1, 1 << 24, 17'000'079, 1 << 30, 0x7fffffff}) {
    EXPECT_LT(null_p1(L), 1.0f) << L;
    EXPECT_TRUE(std::isfinite(null_score(L))) << L;
  }
  EXPECT_EQ(null_p1(1000), 1000.0f / 1001.0f);
}

TEST(Profile, FreeTransitionsCostNothingExceptInsertExtension) {
  Hmm hmm = test_support::random_hmm(5, 2);
  hmm.transition[kTransitions + kII] = 1.0f;
  hmm.transition[kTransitions + kMM] = 1.5f;  // files are not checked: a gain is clipped
  const WordProfile words = make_search_model(hmm)->words;
  EXPECT_EQ(words.ii_out[0], -1);
  EXPECT_EQ(words.mm_in[1], 0);
}

// Large probabilities give large gains; nothing wraps around.
TEST(Profile, ImpossibleProbabilitiesStayInRange) {
  Hmm hmm = test_support::random_hmm(5, 6);
  hmm.match[20 + 3] = INFINITY;
  hmm.match[40 + 3] = 1e30f;
  const auto model = make_search_model(hmm);
  EXPECT_EQ(model->bytes.bias, 255);
  EXPECT_EQ(model->words.match[3 * 6 + 0], 32767);
  EXPECT_EQ(model->words.match[3 * 6 + 1], 32767);
  EXPECT_EQ(model->odds.match[3 * 6 + 0], INFINITY);
}

}  // namespace
}  // namespace hmmjit
