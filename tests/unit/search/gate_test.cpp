// The P-value gate agrees with the exact formula for every score.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "model/score_statistics.hpp"

namespace hmmjit {
namespace {

TEST(PValueGate, EqualsTheFormula) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mu(-40, 20), lambda(0.1, 2), exponent(-12, 0.2),
      offset(-2, 2), far(-500, 500);
  for (int model = 0; model < 300; ++model) {
    const double m = static_cast<float>(mu(random)), l = static_cast<float>(lambda(random));
    const double limit = std::pow(10.0, exponent(random));
    const PValueGate gate(m, l, limit);
    const double deciding = limit < 1 ? m - std::log(-std::log1p(-limit)) / l : m;
    for (int i = 0; i < 200; ++i) {
      for (const float bits : {static_cast<float>(deciding + offset(random)),
                               static_cast<float>(deciding + 0.01 * offset(random)),
                               static_cast<float>(deciding + 1e-6 * offset(random)),
                               static_cast<float>(far(random))}) {
        ASSERT_EQ(gate.rejects(bits), gumbel_survival(bits, m, l) > limit)
            << "mu " << m << " lambda " << l << " limit " << limit << " bits " << bits;
      }
    }
  }
}

TEST(PValueGate, OddScoresAndCalibrations) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const double mu : {-8.0, -99999.0, 0.0, std::nan("")}) {
    for (const double lambda : {0.7, -99999.0, 0.0, std::nan("")}) {
      for (const double limit : {0.02, 1.0, 0.0, -1.0, 1e-320, 0.9999999, std::nan("")}) {
        const PValueGate gate(mu, lambda, limit);
        for (const float bits : {kInfinity, -kInfinity, nan, 0.0f, -99999.0f, 1e6f}) {
          ASSERT_EQ(gate.rejects(bits), gumbel_survival(bits, mu, lambda) > limit)
              << mu << ' ' << lambda << ' ' << limit << ' ' << bits;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hmmjit
