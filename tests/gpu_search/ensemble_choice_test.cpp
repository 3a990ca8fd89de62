// Choices of sampled traces next to their boundary, where a cheap sum would be wrong once in 10^6
// choices: the reference's own arithmetic decides there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/threads.hpp"
#include "support/random_profiles.hpp"
//
#define HMMJIT_LOCKSTEP
#include "lockstep/lockstep.hpp"
//
#include "ensemble/four_lane.cu"

namespace hmmjit::tests {
namespace {

// The reference's choice (Easel, esl_vec_FNorm() and esl_rnd_FChoose()): weights over their
// compensated float sum, the deviate against a running sum in double over the sum of all.
template <std::size_t N>
std::uint32_t chosen(const float (&weights)[N], std::uint32_t state) {
  float total = 0.0f, correction = 0.0f;
  for (const float w : weights) {
    const float y = w - correction, t = total + y;
    correction = (t - total) - y;
    total = t;
  }
  const double u = static_cast<double>(state) / 4294967296.0;
  double shares[N], norm = 0, sum = 0;
  for (std::size_t i = 0; i < N; ++i) {
    shares[i] =
        static_cast<double>(total != 0.0f ? weights[i] / total : 1.0f / static_cast<float>(N));
    norm += shares[i];
  }
  for (std::uint32_t i = 0; i < N; ++i) {
    sum += shares[i];
    if (u < sum / norm) return i;
  }
  return N - 1;
}

TEST(EnsembleChoice, NextToTheBoundaryIsTheReferences) {
  const FlushToZeroScope flush;
  test_support::Random random(60);
  int cheap_would_differ = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto scale = static_cast<float>(std::pow(10.0, random.integer(-30, 3)));
    float w[4];
    for (float& weight : w) weight = static_cast<float>(random.real()) * scale;
    const float two[2] = {w[0], w[1]};
    const double share = static_cast<double>(w[0]) / (static_cast<double>(w[0]) + w[1]);
    const double boundaries[] = {static_cast<double>(w[0]), static_cast<double>(w[0]) + w[1],
                                 static_cast<double>(w[0]) + w[1] + w[2]};
    const double all = boundaries[2] + w[3];
    const auto near = [&](double at) {
      const double state = at * 4294967296.0 + random.integer(-600, 600);
      return static_cast<std::uint32_t>(std::clamp(state, 0.0, 4294967295.0));
    };
    for (int i = 0; i < 20; ++i) {
      const std::uint32_t state = i < 15 ? near(share) : static_cast<std::uint32_t>(random.next());
      const std::uint32_t want = chosen(two, state);
      ASSERT_EQ(hmmjit_device::choose_of_two(two[0], two[1], state), want)
          << two[0] << ' ' << two[1] << ' ' << state;
      const float total = two[0] + two[1];
      cheap_would_differ +=
          (two[0] - static_cast<float>(state) * 0x1p-32f * total > 0.0f ? 0u : 1u) != want;
      const std::uint32_t other = i < 15 ? near(boundaries[i % 3] / all) : state;
      ASSERT_EQ(hmmjit_device::choose_of_four(w, other), chosen(w, other)) << other;
    }
  }
  EXPECT_GT(cheap_would_differ, 1000);  // else nothing has been tested
}

}  // namespace
}  // namespace hmmjit::tests
