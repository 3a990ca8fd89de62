// The gate's decisions against the reference's own arithmetic: what it does not leave open is
// right, however far scores are off within their guard, and it leaves little open.
#define HMMJIT_LOCKSTEP
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>

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

// Where each target goes behind each stage: into one list, or one count, and nowhere else. A score
// is put below its threshold, above it, and within its guard to either side.
class GateSlots : public testing::Test {
 protected:
  static constexpr u32 kTargets = 4, kLength = 100;
  GateSlots() {
    p.database.length = lengths.data();
    p.database.length_class = length_class.data();
    p.database.targets = kTargets;
    p.block = blocks.data();
    p.null_nats = &null_nats;
    p.classes = &classes;
    p.move = &move;
    p.bias = bias.data();
    p.words = words.data();
    p.forward = forward.data();
    p.to_viterbi = to_viterbi.data();
    p.to_forward = to_forward.data();
    p.passed = passed.data();
    p.open = open.data();
    p.counters = &counters;
    p.byte_scale = 4.3f;
    p.word_scale = 721.0f;
    p.word_base = 12000;
    p.base = 190;
    p.forward_guard = 1e-3f;
    p.forward_guard_per_residue = 1e-6f;
    p.list = {survivors.data(), nullptr, 2, kTargets};
    // Decided by the score alone: see set().
    p.bias_gate = p.skip_gate = p.viterbi_gate = p.forward_gate = {0.0f, 0.0f};
  }
  // The bit score at which a stage decides, relative to what the target gets.
  static Gate at(double bits) { return {static_cast<float>(bits), static_cast<float>(bits)}; }
  static constexpr Gate kAlways{-1e30f, -1e30f}, kNever{1e30f, 1e30f};

  // The lists and counts to which the target at that place of the list goes.
  std::string goes(u32 stage, u32 slot = 2) {
    counters = {};
    p.stage = stage;
    EXPECT_EQ(gate_slot(p, slot), kLength);
    std::string out;
    for (const auto& [count, name] : {std::pair{counters.viterbi, "viterbi"},
                                      {counters.forward, "forward"},
                                      {counters.passed, "passed"},
                                      {counters.open, "open"},
                                      {counters.failed_bias, "failed_bias"},
                                      {counters.failed_viterbi, "failed_viterbi"},
                                      {counters.failed_forward, "failed_forward"}}) {
      for (u32 n = 0; n < count; ++n) out += name;
    }
    return out;
  }

  std::vector<u32> lengths = std::vector<u32>(kTargets, kLength),
                   length_class = std::vector<u32>(kTargets, 0), blocks{0, 1, 0, 1};
  // (target, result) of MSV, at list positions 0 to 3.
  std::vector<u32> survivors{3, 200u | kResultMsv, 1, 200u | kResultMsv,
                             0, 200u | kResultMsv, 2, 200u | kResultMsv};
  std::vector<float> bias = std::vector<float>(kTargets, 0.5f),
                     forward = std::vector<float>(kTargets, 0.0f);
  std::vector<WordResult> words = std::vector<WordResult>(kTargets, 0);
  std::vector<Candidate> to_viterbi = std::vector<Candidate>(kTargets),
                         to_forward = std::vector<Candidate>(kTargets);
  std::vector<u32> passed = std::vector<u32>(kTargets, 77);
  std::vector<hmmjit_device::Survivor> open = std::vector<hmmjit_device::Survivor>(kTargets);
  float null_nats = 1.5f;
  LengthClass classes{3, 1, 0, 0, 1};
  s16 move = -500;
  GateCounters counters{};
  GateParams p{};
};

TEST_F(GateSlots, AfterTheBiasFilter) {
  constexpr double kLn2 = 0.69314718055994529;
  const double guard = filter_guard(p, 0, 2.0f) / kLn2;
  const double bits = (msv_score(p, 0, survivors[5]) - 2.0) / kLn2;
  const Gate below = at(bits - 2 * guard), under = at(bits - guard / 2),
             above = at(bits + guard / 2), over = at(bits + 2 * guard);
  p.skip_gate = kNever;
  for (const Gate gate : {under, above}) {  // within the guard: the CPU's
    p.bias_gate = gate;
    EXPECT_EQ(goes(kAfterBias), "open");
    EXPECT_EQ(open[0].target, 0u);
    EXPECT_EQ(open[0].result, survivors[5]);
  }
  p.bias_gate = over;
  EXPECT_EQ(goes(kAfterBias), "failed_bias");
  p.bias_gate = below;
  EXPECT_EQ(goes(kAfterBias), "viterbi");
  EXPECT_EQ(to_viterbi[0].target, 0u);
  EXPECT_EQ(to_viterbi[0].msv, survivors[5]);
  EXPECT_EQ(to_viterbi[0].filter, 2.0f);

  // Past the bias filter, F2 may be decided by the MSV score already.
  for (const Gate gate : {under, above}) {
    p.skip_gate = gate;
    EXPECT_EQ(goes(kAfterBias), "open") << "within the guard of F2: neither Viterbi nor Forward";
    EXPECT_EQ(open[0].target, 0u);
  }
  p.skip_gate = over;
  EXPECT_EQ(goes(kAfterBias), "viterbi");
  p.skip_gate = below;
  EXPECT_EQ(goes(kAfterBias), "forward");
  EXPECT_EQ(to_forward[0].target, 0u);
  EXPECT_EQ(to_forward[0].filter, 2.0f);
  p.to_forward = nullptr;  // nothing to decide there
  EXPECT_EQ(goes(kAfterBias), "passed");
  EXPECT_EQ(passed[0], 0u);

  // Without a Viterbi kernel what needs one is open; without the bias filter the null score counts.
  p.skip_gate = over;
  p.to_viterbi = nullptr;
  EXPECT_EQ(goes(kAfterBias), "open");
  p.to_viterbi = to_viterbi.data();
  p.bias = nullptr;
  p.bias_gate = kNever;
  p.skip_gate = kNever;
  EXPECT_EQ(goes(kAfterBias), "viterbi");
  EXPECT_EQ(to_viterbi[0].filter, null_nats);
}

TEST_F(GateSlots, AfterViterbiAndForward) {
  constexpr double kLn2 = 0.69314718055994529;
  std::vector<Candidate> candidates(kTargets);
  candidates[2].target = 3;
  candidates[2].msv = 210u | kResultMsv;
  candidates[2].filter = 2.0f;
  p.list = {reinterpret_cast<const u32*>(candidates.data()), nullptr, kCandidateStride, kTargets};
  words[2] = 9000u | (kStatusScore << 16);
  const double guard = filter_guard(p, 3, 2.0f) / kLn2;
  const double bits = (word_score(p, 3, words[2]) - 2.0) / kLn2;
  for (const double by : {-0.5, 0.5}) {
    p.viterbi_gate = at(bits + by * guard);
    EXPECT_EQ(goes(kAfterViterbi), "open");
    EXPECT_EQ(open[0].target, 3u);
    EXPECT_EQ(open[0].result, 210u | kResultMsv);
  }
  p.viterbi_gate = at(bits + 2 * guard);
  EXPECT_EQ(goes(kAfterViterbi), "failed_viterbi");
  p.viterbi_gate = at(bits - 2 * guard);
  EXPECT_EQ(goes(kAfterViterbi), "forward");
  EXPECT_EQ(to_forward[0].target, 3u);
  EXPECT_EQ(to_forward[0].msv, 210u | kResultMsv);
  // Targets that no kernel has decided are open, whatever the word says.
  words[2] = 9000u | (kStatusNoResult << 16);
  EXPECT_EQ(goes(kAfterViterbi), "open");
  words[2] = kStatusOverflow << 16;
  EXPECT_EQ(goes(kAfterViterbi), "forward");

  // The CPU scores targets that pass Forward again: those within the guard pass.
  forward[2] = 30.0f;
  const double forward_bits = 28.0 / kLn2;
  const double own = 1e-3 / kLn2 + 1e-6 * kLength / kLn2;
  for (const double by : {-2.0, -0.5, 0.5}) {
    p.forward_gate = at(forward_bits + by * (guard + own));
    EXPECT_EQ(goes(kAfterForward), "passed") << by;
    EXPECT_EQ(passed[0], 3u);
  }
  // Also where the filter's guard alone would not reach.
  p.forward_gate = at(forward_bits + guard + own / 2);
  EXPECT_EQ(goes(kAfterForward), "passed");
  p.forward_gate = at(forward_bits + 2 * (guard + own));
  EXPECT_EQ(goes(kAfterForward), "failed_forward");
}

}  // namespace
}  // namespace hmmjit::tests
