#include "model/profile.hpp"

#include <gtest/gtest.h>

#include <bit>
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

TEST(VectorExp, PublishedValues) {
  EXPECT_EQ(vector_exp(0.0f), 1.0f);
  EXPECT_EQ(vector_exp(-0.1f), 0x1.cf46dap-1f);
  EXPECT_EQ(vector_exp(-1.0f), 0x1.78b564p-2f);
  EXPECT_EQ(vector_exp(1.5f), 0x1.1ed3fep+2f);
  EXPECT_EQ(vector_exp(-7.5f), 0x1.21f9bap-11f);
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

TEST(LengthModel, PublishedValues) {
  EXPECT_EQ(null_score(153), -0x1.82282p+2f);
  EXPECT_EQ(null_score(2554), -0x1.1b0f4p+3f);
  EXPECT_EQ(null_score(146), -0x1.7f2b64p+2f);
  const auto model = test_support::random_model(1, 10);
  EXPECT_EQ(model->bytes.tjb(153), 17);
  EXPECT_EQ(model->bytes.tjb(2554), 29);
  EXPECT_EQ(model->bytes.tjb(146), 17);
  EXPECT_EQ(model->words.move(153), -2850);
  EXPECT_EQ(model->words.move(2554), -4868);
  EXPECT_EQ(model->words.move(146), -2817);
}

TEST(LengthModel, LongTargetsHaveAFiniteNullScore) {
  for (const int L : {1, (1 << 24) - 1, 1 << 24, 17'000'079, 1 << 30, 0x7fffffff}) {
    EXPECT_LT(null_p1(L), 1.0f) << L;
    EXPECT_TRUE(std::isfinite(null_score(L))) << L;
  }
  EXPECT_EQ(null_p1(1000), 1000.0f / 1001.0f);
}

TEST(LengthModel, MultihitAndUnihit) {
  const LengthModel multihit = length_model(97, true);
  EXPECT_EQ(multihit.move, 3.0f / 100.0f);
  EXPECT_EQ(multihit.loop, 1.0f - 3.0f / 100.0f);
  EXPECT_EQ(multihit.ec, 0.5f);
  EXPECT_EQ(multihit.ej, 0.5f);
  const LengthModel unihit = length_model(98, false);
  EXPECT_EQ(unihit.move, 2.0f / 100.0f);
  EXPECT_EQ(unihit.ec, 1.0f);
  EXPECT_EQ(unihit.ej, 0.0f);
  EXPECT_EQ(null_p1(3), 0.75f);
}

// Two nodes with exact binary probabilities, small enough to compute by hand.
Hmm two_nodes() {
  Hmm hmm;
  hmm.M = 2;
  hmm.alphabet = &dna_alphabet();
  hmm.match = {0, 0, 0, 0, /**/ 0.5f, 0.25f, 0.25f, 0, /**/ 1, 0, 0, 0};
  hmm.insert.assign(12, 0.25f);
  hmm.transition = {0.5f, 0.25f, 0.25f, 1,    0,    1,    0,     //
                    0.5f, 0.25f, 0.25f, 0.5f, 0.5f, 0.5f, 0.5f,  //
                    1,    0,     0,     1,    0,    1,    0};
  hmm.compo = {0.75f, 0.125f, 0.125f, 0};
  return hmm;
}

TEST(Profile, ByHand) {
  const Profile p = make_search_model(two_nodes())->profile;
  const auto ln = [](double v) { return static_cast<float>(std::log(v)); };
  // Occupancy 0.75, then 0.75 * 0.75 + 0.25 * 0.5 = 0.6875; Z = 2 * 0.75 + 0.6875.
  EXPECT_EQ(p.entry[1], ln(static_cast<double>(0.75f / 2.1875f)));
  EXPECT_EQ(p.entry[2], ln(static_cast<double>(0.6875f / 2.1875f)));
  EXPECT_EQ(p.match_score(0, 1), ln(2));
  EXPECT_EQ(p.match_score(1, 1), 0.0f);
  EXPECT_EQ(p.match_score(3, 1), -INFINITY);
  EXPECT_EQ(p.match_score(0, 2), ln(4));
  // R = A or G: the mean of ln 2 and 0; N includes the impossible T.
  const int r = 5, n = 15;
  EXPECT_EQ(p.match_score(r, 1), (ln(2) * 0.25f + 0.0f) / 0.5f);
  EXPECT_EQ(p.match_score(n, 1), -INFINITY);
  for (const int x : {4, 16, 17}) EXPECT_EQ(p.match_score(x, 1), -INFINITY);
  EXPECT_EQ(p.transition[kMI][1], ln(0.25));
  EXPECT_EQ(p.transition[kDD][1], ln(0.5));
  for (int a = 0; a < kTransitions; ++a) {
    EXPECT_EQ(p.transition[a][0], -INFINITY);
    EXPECT_EQ(p.transition[a][2], -INFINITY);  // none leave the last node
  }

  const ByteProfile bytes = make_byte_profile(p);
  EXPECT_EQ(bytes.scale, 0x1.14ff58p+2f);
  EXPECT_EQ(bytes.bias, 6);  // 3 log2(4)
  EXPECT_EQ(bytes.tec, 3);
  EXPECT_EQ(bytes.tbm, 5);  // round(3 log2(2 * 3 / 2))
  EXPECT_EQ(bytes.cost[0 * 2 + 0], 6 - 3);
  EXPECT_EQ(bytes.cost[0 * 2 + 1], 0);
  EXPECT_EQ(bytes.cost[1 * 2 + 0], 6);
  EXPECT_EQ(bytes.cost[3 * 2 + 0], 255);
  EXPECT_EQ(bytes.signed_cost(255), 127);
  EXPECT_EQ(bytes.signed_cost(0), -6);

  const WordProfile words = make_word_profile(p);
  EXPECT_EQ(words.scale, 0x1.68ac7cp+9f);
  EXPECT_EQ(words.match[0], 500);
  EXPECT_EQ(words.match[1], 1000);
  EXPECT_EQ(words.match[3 * 2], -32768);
  EXPECT_EQ(words.mm_in, (std::vector<std::int16_t>{-32768, -500}));
  EXPECT_EQ(words.dm_in, (std::vector<std::int16_t>{-32768, -500}));
  EXPECT_EQ(words.mi_out, (std::vector<std::int16_t>{-1000, -32768}));
  EXPECT_EQ(words.dd_out, (std::vector<std::int16_t>{-500, -32768}));
  EXPECT_EQ(words.ec, -500);
  EXPECT_EQ(words.ej, -500);

  const OddsProfile odds = make_odds_profile(p);
  EXPECT_EQ(odds.match[0], vector_exp(ln(2)));
  EXPECT_EQ(odds.match[3 * 2], 0.0f);
  EXPECT_EQ(odds.mm_in, (std::vector<float>{0.0f, vector_exp(ln(0.5))}));
  EXPECT_EQ(odds.md_out, (std::vector<float>{vector_exp(ln(0.25)), 0.0f}));
}

TEST(Profile, FreeTransitionsCostNothingExceptInsertExtension) {
  Hmm hmm = two_nodes();
  hmm.transition[kTransitions + kII] = 1.0f;
  hmm.transition[kTransitions + kMM] = 1.5f;  // files are not checked: a gain is clipped
  const WordProfile words = make_search_model(hmm)->words;
  EXPECT_EQ(words.ii_out[0], -1);
  EXPECT_EQ(words.mm_in[1], 0);
}

TEST(BiasModel, ByHand) {
  const BiasModel model = make_bias_model(two_nodes());
  EXPECT_EQ(model.t10, 1.0f / 1.25f);  // mean run of 2/8 residues
  EXPECT_EQ(model.t11, 0.25f / 1.25f);
  EXPECT_EQ(model.odds[0][0], 1.0f);
  EXPECT_EQ(model.odds[1][0], 3.0f);
  EXPECT_EQ(model.odds[1][3], 0.0f);
  EXPECT_EQ(model.odds[1][5], (0.75f + 0.125f) / 0.5f);  // R: ratio of sums
  EXPECT_EQ(model.odds[1][15], 1.0f);
  for (const int x : {4, 16, 17}) EXPECT_EQ(model.odds[1][x], 1.0f);
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

TEST(Profile, TablesOfEveryKindAreConsistent) {
  for (const auto kind : test_support::kAllModelKinds) {
    for (const int M : {1, 2, 50}) {
      const auto model = test_support::random_model(11, M, kind);
      SCOPED_TRACE(model->hmm.name);
      const auto cells = static_cast<std::size_t>(model->bytes.Kp) * M;
      ASSERT_EQ(model->bytes.cost.size(), cells);
      ASSERT_EQ(model->words.match.size(), cells);
      ASSERT_EQ(model->odds.match.size(), cells);
      for (std::size_t i = 0; i < cells; ++i) {
        // The same score in three units, away from their limits.
        const int cost = model->bytes.cost[i], word = model->words.match[i];
        const double odds = static_cast<double>(model->odds.match[i]);
        ASSERT_FALSE(std::isnan(odds));
        if (word > -32768) {
          EXPECT_NEAR(std::log(odds) * 500 / std::log(2.0), word, 0.51);
        }
        if (word > -32768 && cost < 255) {
          EXPECT_NEAR(model->bytes.bias - cost, word * 0.006, 0.51);
        }
        EXPECT_TRUE(odds > 0 || (cost == 255 && word == -32768));
      }
      EXPECT_EQ(model->words.mm_in[0], -32768);
      EXPECT_EQ(model->words.dd_out.back(), -32768);
      EXPECT_EQ(model->odds.dd_out.back(), 0.0f);
    }
  }
}

}  // namespace
}  // namespace hmmjit
