// The reference filters against independent formulations (enumeration, unlimited integers,
// double-precision logs), and at the limits of their number types.
#include "reference/filters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/threads.hpp"
#include "reference/scans.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/reference_forward.hpp"

namespace hmmjit {
namespace {

using reference::SsvStatus;
using test_support::ModelKind;
using test_support::TargetKind;

// Calls f(model, target) over models and targets of all kinds.
template <typename F>
void for_all(std::initializer_list<int> model_lengths, std::initializer_list<int> target_lengths,
             F&& f) {
  std::uint64_t seed = 1;
  for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet()}) {
    for (const ModelKind kind : test_support::kAllModelKinds) {
      for (const int M : model_lengths) {
        const auto model = test_support::random_model(++seed, M, kind, *alphabet);
        for (const TargetKind target : test_support::kAllTargetKinds) {
          for (const int L : target_lengths) {
            SCOPED_TRACE(model->hmm.name + " x " + to_string(target) + " " + std::to_string(L));
            f(*model, test_support::random_target(++seed, L, target, model->hmm));
          }
        }
      }
    }
  }
}

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

TEST(Ssv, EqualsEnumerationAndMsvRecurrence) {
  for_all({1, 2, 6, 40}, {1, 3, 50, 200},
          [](const SearchModel& model, std::span<const Residue> residues) {
            check_ssv(model.bytes, residues);
          });
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

TEST(Msv, ByHand) {
  const auto model = test_support::random_model(2, 1);
  ByteProfile bytes = model->bytes;
  bytes.bias = 20;
  std::fill(bytes.cost.begin(), bytes.cost.end(), std::uint8_t{255});
  bytes.cost[0] = 0;  // 'A' gains 20
  const int L = 3;
  const int tjb = bytes.tjb(L);
  const Residue target[] = {5, 0, 5};
  const int E = bytes.base - tjb - bytes.tbm + 20;
  EXPECT_EQ(reference::msv_recurrence(bytes, target),
            (float(E - bytes.tec - tjb) - 190.0f) / bytes.scale - 3.0f);
  // Nothing fits: J stays 0 and the score falls below zero bytes.
  const Residue nothing[] = {5, 5, 5};
  EXPECT_EQ(reference::msv_recurrence(bytes, nothing), (float(-tjb) - 190.0f) / bytes.scale - 3.0f);
}

// The same recurrence in unlimited integers, with a large negative number as minus infinity.
double viterbi_unlimited(const WordProfile& w, std::span<const Residue> residues) {
  constexpr long kNever = -1000000000;
  const auto term = [](long a, std::int16_t t) { return t == -32768 ? kNever : a + t; };
  const int M = w.M;
  const auto size = static_cast<std::size_t>(M) + 1;
  const long move = w.move(static_cast<int>(residues.size()));
  long B = w.base + move, J = kNever, C = kNever;
  std::vector<long> m(size, kNever), i(m), d(m), m2(m), i2(m), d2(m);
  for (const Residue x : residues) {
    long E = kNever;
    for (int k = 1; k <= M; ++k) {
      const long best = std::max({term(B, w.entry[k - 1]), term(m[k - 1], w.mm_in[k - 1]),
                                  term(i[k - 1], w.im_in[k - 1]), term(d[k - 1], w.dm_in[k - 1])});
      m2[k] = term(best, w.match[static_cast<std::size_t>(x) * M + k - 1]);
      i2[k] = std::max(term(m[k], w.mi_out[k - 1]), term(i[k], w.ii_out[k - 1]));
      d2[k] = k == 1 ? kNever
                     : std::max(term(m2[k - 1], w.md_out[k - 2]), term(d2[k - 1], w.dd_out[k - 2]));
      E = std::max(E, m2[k]);
    }
    if (E >= 32767) return std::numeric_limits<double>::infinity();
    C = std::max(C, E + w.ec), J = std::max(J, E + w.ej), B = std::max(J + move, w.base + move);
    m.swap(m2), i.swap(i2), d.swap(d2);
  }
  return static_cast<double>(C + move - w.base) / static_cast<double>(w.scale) - 3.0;
}

TEST(Viterbi, EqualsUnlimitedIntegersWithinRange) {
  int compared = 0, overflows = 0;
  for_all({1, 2, 6, 40, 130}, {1, 50, 300},
          [&](const SearchModel& model, std::span<const Residue> residues) {
            const float score = reference::viterbi_filter(model.words, residues);
            const double expected = viterbi_unlimited(model.words, residues);
            if (expected < -20) {
              EXPECT_LT(score, -15);  // paths near the lower limit: clamped, never better
              return;
            }
            if (std::isinf(expected)) {
              EXPECT_EQ(score, INFINITY);
              ++overflows;
            } else {
              EXPECT_NEAR(static_cast<double>(score), expected, 1e-5);
            }
            ++compared;
          });
  EXPECT_GT(compared, 500);
  EXPECT_GT(overflows, 20);
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

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// Forward in double-precision log space from the log-odds profile.
double forward_logs(const Profile& p, std::span<const Residue> residues, bool multihit) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const double L = static_cast<double>(residues.size()), nj = multihit ? 1 : 0;
  const double move = std::log((2 + nj) / (L + 2 + nj)), loop = std::log(L / (L + 2 + nj));
  const double ec = multihit ? -std::log(2.0) : 0, ej = multihit ? -std::log(2.0) : kNever;
  const auto size = static_cast<std::size_t>(p.M) + 1;
  std::vector<double> m(size, kNever), i(m), d(m), m2(m), i2(m), d2(m);
  double N = 0, B = move, J = kNever, C = kNever;
  const auto t = [&](Transition a, int k) { return static_cast<double>(p.transition[a][k]); };
  for (const Residue x : residues) {
    double E = kNever;
    for (int k = 1; k <= p.M; ++k) {
      double sum = B + static_cast<double>(p.entry[k]);
      sum = log_add(sum, m[k - 1] + t(kMM, k - 1));
      sum = log_add(sum, i[k - 1] + t(kIM, k - 1));
      sum = log_add(sum, d[k - 1] + t(kDM, k - 1));
      m2[k] = sum + static_cast<double>(p.match_score(x, k));
      i2[k] = log_add(m[k] + t(kMI, k), i[k] + t(kII, k));
      d2[k] = log_add(m2[k - 1] + t(kMD, k - 1), d2[k - 1] + t(kDD, k - 1));
      E = log_add(E, log_add(m2[k], d2[k]));
    }
    N += loop;
    C = log_add(C + loop, E + ec);
    J = log_add(J + loop, E + ej);
    B = log_add(N, J) + move;
    m.swap(m2), i.swap(i2), d.swap(d2);
  }
  return C + move;
}

TEST(Forward, CloseToDoublePrecisionLogs) {
  const FlushToZeroScope flush;
  int compared = 0, scaled = 0;
  for_all({1, 6, 33, 110}, {1, 40, 90},
          [&](const SearchModel& model, std::span<const Residue> residues) {
            for (const bool multihit : {true, false}) {
              const LengthModel length = length_model(static_cast<int>(residues.size()), multihit);
              const auto forward = reference::forward(model.odds, residues, length);
              const double expected = forward_logs(model.profile, residues, multihit);
              ASSERT_EQ(forward.scale.size(), residues.size() + 1);
              if (expected < -60) return;  // near or below the range of floats
              // One scale per row: unihit, a strong copy pushes N below the range of floats, and
              // with it the paths through another copy (Eddy 2011).
              if (!multihit && expected > 60) {
                EXPECT_LT(static_cast<double>(forward.nats), expected + 2e-3);
                return;
              }
              EXPECT_NEAR(static_cast<double>(forward.nats), expected, 2e-3);
              scaled += forward.total > 0;
              ++compared;
            }
          });
  EXPECT_GT(compared, 500);
  EXPECT_GT(scaled, 50);
}

TEST(Forward, DeletePathsAroundTheLanesAreExtended) {
  // The path M1 D2..D(M-1) MM goes three times around the four lanes.
  const FlushToZeroScope flush;
  for (const int M : {8, 99, 100, 101, 160}) {
    Hmm hmm = test_support::random_hmm(9, M, ModelKind::kFlat);
    for (int k = 1; k < M; ++k) {
      float* t = hmm.transition.data() + static_cast<std::size_t>(k) * kTransitions;
      t[kMM] = 0.5f, t[kMI] = 0, t[kMD] = 0.5f, t[kDM] = 0.01f, t[kDD] = 0.99f;
    }
    const auto model = make_search_model(hmm);
    const auto residues = test_support::random_target(4, 30, TargetKind::kHomologous, hmm);
    EXPECT_NEAR(reference::forward_score(model->odds, residues),
                forward_logs(model->profile, residues, true), 1e-4)
        << M;
  }
}

TEST(Forward, NoPathIsMinusInfinity) {
  const FlushToZeroScope flush;
  const auto model = test_support::random_model(3, 20);
  const auto residues = test_support::random_target(1, 30, TargetKind::kNonresidue, model->hmm);
  EXPECT_EQ(reference::forward_score(model->odds, residues), -INFINITY);
}

TEST(BiasFilter, EqualCompositionsGiveTheNullScore) {
  Hmm hmm = test_support::random_hmm(3, 40);
  hmm.compo = hmm.alphabet->background;
  const auto residues = test_support::random_target(8, 300, TargetKind::kUniformCodes, hmm);
  EXPECT_NEAR(reference::bias_filter(make_bias_model(hmm), residues), null_score(300), 1e-3);
}

TEST(BiasFilter, CloseToDoublePrecision) {
  const FlushToZeroScope flush;
  for_all({3, 80}, {1, 30, 400}, [](const SearchModel& model, std::span<const Residue> residues) {
    const BiasModel& b = model.bias;
    const double L = static_cast<double>(residues.size()), p1 = L / (L + 1);
    double a0 = 0.999, a1 = 0.001, logs = 0;
    for (std::size_t i = 0; i < residues.size(); ++i) {
      const double n0 = i == 0 ? a0 : a0 * p1 + a1 * static_cast<double>(b.t10);
      const double n1 = i == 0 ? a1 : a0 * (1 - p1) + a1 * static_cast<double>(b.t11);
      a0 = n0 * static_cast<double>(b.odds[0][residues[i]]);
      a1 = n1 * static_cast<double>(b.odds[1][residues[i]]);
      logs += std::log(a0 + a1);
      const double sum = a0 + a1;
      a0 /= sum, a1 /= sum;
    }
    EXPECT_NEAR(reference::bias_filter(b, residues), logs + L * std::log(p1) + std::log(1 - p1),
                5e-3);
  });
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
