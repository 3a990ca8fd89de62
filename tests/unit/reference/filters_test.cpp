// The reference filters at the limits of their number types, and SSV against an enumeration. Vector
// filters and kernels are compared with them, and the program with HMMER.
#include "reference/filters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/scans.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

using reference::SsvStatus;
using test_support::TargetKind;

// Largest sum of signed scores over any part of a diagonal, at least 0: SSV without its limits.
int best_segment(const ByteProfile& bytes, std::span<const Residue> residues) {
  const int L = static_cast<int>(residues.size());
  int best = 0;
  for (int start = 1 - bytes.M; start < L; ++start) {
    int sum = 0;
    for (int i = std::max(0, start); i < std::min(L, start + bytes.M); ++i) {
      const auto cell = static_cast<std::size_t>(residues[i]) * bytes.M + (i - start);
      sum = std::max(0, sum - bytes.signed_cost(bytes.cost[cell]));
      best = std::max(best, sum);
    }
  }
  return best;
}

void check_ssv(const ByteProfile& bytes, std::span<const Residue> residues) {
  const int L = static_cast<int>(residues.size());
  const auto ssv = reference::ssv_filter(bytes, residues);
  const float msv = reference::msv_recurrence(bytes, residues);
  if (!reference::ssv_usable(bytes, L)) {
    EXPECT_EQ(ssv.status, SsvStatus::kNoResult);
  } else {
    EXPECT_EQ(ssv, reference::ssv_decide(bytes, 128 + best_segment(bytes, residues), L));
    const float floor = reference::ssv_decide(bytes, 128, L).nats;
    if (ssv.status == SsvStatus::kOverflow) {
      EXPECT_EQ(msv, INFINITY);
    } else if (ssv.status == SsvStatus::kScore && ssv.nats > floor) {
      EXPECT_EQ(ssv.nats, msv);
    } else if (ssv.status == SsvStatus::kScore) {
      EXPECT_GE(ssv.nats,
                msv);  // no segment gains: the score is that of a begin, which is no path in MSV
    }
  }
  EXPECT_EQ(reference::msv_filter(bytes, residues),
            ssv.status == SsvStatus::kNoResult ? msv : ssv.nats);
}

TEST(Ssv, ArbitraryBytes) {
  int seen[3] = {0, 0, 0};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const int M = 1 + static_cast<int>(seed % 37);
    const ByteProfile bytes = test_support::random_byte_profile(seed, M, amino_alphabet());
    const Hmm hmm = test_support::random_hmm(seed, M);
    const auto residues = test_support::random_target(seed, 1 + static_cast<int>(seed * 7 % 120),
                                                      TargetKind::kUniformCodes, hmm);
    SCOPED_TRACE(seed);
    check_ssv(bytes, residues);
    ++seen[static_cast<int>(reference::ssv_filter(bytes, residues).status)];
  }
  for (const int count : seen) EXPECT_GT(count, 5);  // every outcome occurred
}

TEST(Ssv, DecisionAtItsLimits) {
  const auto model = test_support::random_model(2, 100);
  ByteProfile bytes = model->bytes;
  const int L = 200;
  const int overflow = 255 - bytes.bias;
  const int begin = bytes.base - bytes.tjb(L) - bytes.tbm;
  ASSERT_GE(begin, 128);
  // From here on J pays, then the bytes overflow.
  const int first_unknown = bytes.base + bytes.tec - begin + 128 + 1;
  EXPECT_EQ(reference::ssv_decide(bytes, first_unknown - 1, L).status, SsvStatus::kScore);
  EXPECT_EQ(reference::ssv_decide(bytes, first_unknown, L).status, SsvStatus::kNoResult);
  const int first_overflow = overflow - begin + 128;
  EXPECT_EQ(reference::ssv_decide(bytes, first_overflow - 1, L).status, SsvStatus::kNoResult);
  EXPECT_EQ(reference::ssv_decide(bytes, first_overflow, L).status, SsvStatus::kOverflow);
  EXPECT_EQ(reference::ssv_decide(bytes, 10000, L).status, SsvStatus::kOverflow);
  // A begin score below 128 makes the largest values ambiguous.
  bytes.tbm = static_cast<std::uint8_t>(bytes.tbm + begin - 127);
  EXPECT_EQ(reference::ssv_decide(bytes, overflow, L).status, SsvStatus::kNoResult);
  // The sum of the constants must fit a signed byte.
  bytes.tbm = static_cast<std::uint8_t>(126 - bytes.tjb(L) - bytes.tec - bytes.bias);
  EXPECT_TRUE(reference::ssv_usable(bytes, L));
  ++bytes.tbm;
  EXPECT_FALSE(reference::ssv_usable(bytes, L));
}

WordProfile one_node(std::int16_t match) {
  WordProfile words = test_support::random_model(2, 1)->words;
  std::fill(words.match.begin(), words.match.end(), match);
  EXPECT_EQ(words.entry[0], 0);
  return words;
}

TEST(Viterbi, OverflowIsExact) {
  const Residue target[] = {0};
  const int move = one_node(0).move(1);
  const auto limit = static_cast<std::int16_t>(32767 - 12000 - move);
  EXPECT_EQ(reference::viterbi_filter(one_node(limit), target), INFINITY);
  EXPECT_EQ(reference::viterbi_filter(one_node(32767), target), INFINITY);
  const auto below = static_cast<std::int16_t>(limit - 1);
  EXPECT_EQ(reference::viterbi_filter(one_node(below), target),
            (float(32766 - 500 + move) - 12000.0f) / one_node(0).scale - 3.0f);
}

TEST(Viterbi, MinusInfinityIsANumber) {
  const Residue target[] = {0};
  const WordProfile words = one_node(-32768);
  const int move = words.move(1);
  // B + (-32768) is far above -32768: an impossible match still leaves a (hopeless) score.
  EXPECT_EQ(reference::viterbi_filter(words, target),
            (float(12000 + move - 32768 - 500 + move) - 12000.0f) / words.scale - 3.0f);
  // Impossible entry and match together reach it: no path.
  WordProfile closed = words;
  closed.entry[0] = -32768;
  EXPECT_EQ(reference::viterbi_filter(closed, target), -INFINITY);
  EXPECT_EQ(reference::viterbi_nats(words, -32768, 1), -INFINITY);
  EXPECT_GT(reference::viterbi_nats(words, -32767, 1), -INFINITY);
}

TEST(BiasFilter, WithoutComposition) {
  // The second state vanishes at the first step, with its share.
  Hmm hmm = test_support::random_hmm(3, 40);
  hmm.compo = {};
  const auto residues = test_support::random_target(8, 300, TargetKind::kBackground, hmm);
  const float score = reference::bias_filter(make_bias_model(hmm), residues);
  EXPECT_NEAR(score, null_score(300) - 1.0, 0.02);
}

TEST(Scans, BytesMarkRowsUpToTheirLimits) {
  ByteProfile profile;
  profile.bias = 20;
  const auto height = [&](int threshold, int begin) {
    return reference::marking_height(profile, {threshold, begin, 0});
  };
  EXPECT_EQ(height(190, 189), 1);
  EXPECT_EQ(height(190, 190), 0);
  EXPECT_EQ(height(190, 83), 107);  // with the bias a signed byte
  EXPECT_EQ(height(190, 82), 0);
  EXPECT_EQ(height(235, 200), 35);  // with the bias a byte
  EXPECT_EQ(height(236, 200), 0);
}

}  // namespace
}  // namespace hmmjit
