// The gate's decisions against the reference's own arithmetic: what it does not leave open is
// right, however far scores are off within their guard, and it leaves little open.
#define HMMJIT_LOCKSTEP
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "layout/byte_tables.hpp"
#include "layout/float_tables.hpp"
#include "lockstep/lockstep.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"
#include "support/random_profiles.hpp"
//
#include "common/gate.cuh"

namespace hmmjit::tests {
namespace {

using namespace hmmjit_device;

Gate gate_of(const ScoreBand& band) { return {band.rejects, band.passes}; }

TEST(Gate, NeverContradictsTheExactDecision) {
  std::minstd_rand random(5);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random() % 1'000'000) / 1e6);
  };
  int open = 0, decided = 0, near = 0;
  for (int round = 0; round < 20'000; ++round) {
    const bool forward = round % 2 == 1;
    const double lambda = uniform(0.5, 1.0), location = uniform(-15, 5);
    const double limit = std::pow(10.0, uniform(-9, -0.01));
    const ScoreBand band =
        forward ? exponential_band(location, lambda, limit) : gumbel_band(location, lambda, limit);
    const double deciding = forward ? location - std::log(limit) / lambda
                                    : location - std::log(-std::log1p(-limit)) / lambda;
    // Half of all scores next to the threshold.
    const double bits = deciding + (round % 4 < 2 ? uniform(-0.1, 0.1) : uniform(-30, 30));
    const auto filter = static_cast<float>(uniform(-60, 5));
    const auto nats = static_cast<float>(bits * 0.69314718055994529 + static_cast<double>(filter));
    const float exact = nats_to_bits(nats - filter);
    const double P = forward ? exponential_survival(exact, location, lambda)
                             : gumbel_survival(exact, location, lambda);
    const double guard = uniform(0, 0.01);
    const double seen =
        static_cast<double>(nats) - static_cast<double>(filter) + uniform(-guard, guard);
    const hmmjit_device::Verdict verdict = judge(gate_of(band), seen, guard);
    if (verdict == kOpen) {
      ++open;
      near += round % 4 < 2;
      continue;
    }
    ++decided;
    ASSERT_EQ(verdict == kPasses, !(P > limit)) << bits << " of " << deciding << " limit " << limit;
  }
  EXPECT_GT(decided, open);
  EXPECT_GT(near, 100);
  EXPECT_LT(open - near, 100);
}

TEST(Gate, LimitsBeyondAnyProbability) {
  const Gate all = gate_of(gumbel_band(-5, 0.7, 1.0)), none = gate_of(gumbel_band(-5, 0.7, -1.0));
  for (const double nats : {-500.0, 0.0, 500.0}) {
    EXPECT_EQ(judge(all, nats, 0.1), kPasses);
    EXPECT_EQ(judge(none, nats, 0.1), kOpen);
  }
  EXPECT_EQ(judge(none, infinite_score(), 0.1), kOpen);
  EXPECT_EQ(judge(gate_of(gumbel_band(-5, 0.7, 0.02)), infinite_score(), 0.1), kPasses);
  EXPECT_EQ(judge(gate_of(gumbel_band(-5, 0.7, 0.02)), -infinite_score(), 0.1), kFails);
  EXPECT_EQ(judge(gate_of(gumbel_band(-5, 0.7, 0.02)), std::nan(""), 0.1), kOpen);
}

TEST(Gate, ScoresAreTheReferences) {
  const auto model =
      make_search_model(test_support::random_hmm(3, 80, test_support::ModelKind::kTypical));
  for (const u32 length : {1u, 90u, 400u, 5000u}) {
    const std::vector<u32> lengths{length}, length_class{0};
    const auto classes = layout::make_length_classes(model->bytes, Calibration{}, 0.02, lengths);
    const s16 move = model->words.move(static_cast<int>(length));
    GateParams p{};
    p.database.length = lengths.data();
    p.database.length_class = length_class.data();
    p.classes = classes.data();
    p.move = &move;
    p.byte_scale = model->bytes.scale;
    p.word_scale = model->words.scale;
    p.base = static_cast<u8>(model->bytes.base);
    p.tec = model->bytes.tec;
    p.tbm = model->bytes.tbm;
    p.word_base = static_cast<s16>(model->words.base);
    const auto L = static_cast<int>(length);
    for (int value = 0; value < 256; ++value) {
      const auto result = static_cast<u32>(value);
      EXPECT_NEAR(msv_score(p, 0, result | kResultMsv), reference::msv_nats(model->bytes, value, L),
                  1e-4);
      const auto ssv = reference::ssv_decide(model->bytes, value, L);
      if (value < 128 || ssv.status != reference::SsvStatus::kScore) continue;
      EXPECT_NEAR(msv_score(p, 0, result), ssv.nats, 1e-4);
    }
    for (int C = -32767; C < 32768; C += 97) {
      EXPECT_NEAR(word_score(p, 0, static_cast<u32>(C) & 0xffffu),
                  reference::viterbi_nats(model->words, C, L), 1e-4);
    }
    EXPECT_EQ(word_score(p, 0, 0x8000u), -infinite_score());
    EXPECT_EQ(word_score(p, 0, kStatusOverflow << 16), infinite_score());
    // The kernels' guard is the host's, and a little more.
    const auto null_nats = null_score(L);
    p.null_nats = &null_nats;
    for (const float sum : {-900.0f, -3.0f, 0.0f, 40.0f, 5000.0f}) {
      EXPECT_GT(filter_guard(p, 0, null_nats + sum), layout::bias_guard(sum, L));
    }
  }
}

}  // namespace
}  // namespace hmmjit::tests
