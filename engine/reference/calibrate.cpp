#include "reference/calibrate.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/threads.hpp"
#include "model/profile.hpp"
#include "model/random.hpp"
#include "reference/filters.hpp"

namespace hmmjit::reference {
namespace {

constexpr double kLn2 = 0.69314718055994529;
constexpr int kTargets = 200;
constexpr int kFilterLength = 200, kForwardLength = 100;
constexpr double kTailMass = 0.04;  // Forward scores are exponential in this upper tail

// Mean relative entropy of the match emissions, in bits per node.
double mean_relative_entropy(const Hmm& hmm) {
  double sum = 0;
  for (int k = 1; k <= hmm.M; ++k) {
    float entropy = 0;
    for (int x = 0; x < hmm.alphabet->K; ++x) {
      const float p = hmm.match_p(k, x);
      if (!(p > 0.0f)) continue;
      const float ratio = p / hmm.alphabet->background[x];
      entropy = static_cast<float>(static_cast<double>(entropy) +
                                   static_cast<double>(p) * std::log2(static_cast<double>(ratio)));
    }
    sum += static_cast<double>(entropy);
  }
  return sum / static_cast<double>(hmm.M);
}

// Maximum likelihood location of a Gumbel distribution of known lambda.
double gumbel_location(std::span<const double> x, double lambda) {
  double sum = 0;
  for (const double v : x) sum += std::exp(-lambda * v);
  return -std::log(sum / static_cast<double>(x.size())) / lambda;
}

// The likelihood equation of lambda and its derivative (Lawless 1982, 4.1.6).
struct LikelihoodSlope {
  double f, df;
};
LikelihoodSlope likelihood_slope(std::span<const double> x, double lambda) {
  double sum = 0, e = 0, xe = 0, xxe = 0;
  for (const double v : x) {
    const double weight = std::exp(-lambda * v);
    sum += v;
    e += weight;
    xe += v * weight;
    xxe += v * v * weight;
  }
  const double n = static_cast<double>(x.size());
  return {1.0 / lambda - sum / n + xe / e, (xe / e) * (xe / e) - xxe / e - 1.0 / (lambda * lambda)};
}

// Maximum likelihood lambda of a Gumbel distribution: Newton-Raphson from the moment estimate,
// bisection where that does not settle.
double gumbel_lambda(std::span<const double> x) {
  constexpr double kTolerance = 1e-5;
  constexpr int kSteps = 100;
  double sum = 0, squares = 0;
  for (const double v : x) sum += v, squares += v * v;
  const double n = static_cast<double>(x.size());
  const double variance = std::abs((squares - sum * sum / n) / (n - 1.0));
  const double start = 3.14159265358979323846 / std::sqrt(6.0 * variance);

  double lambda = start;
  for (int step = 0; step < kSteps; ++step) {
    const auto [f, df] = likelihood_slope(x, lambda);
    if (std::abs(f) < kTolerance) return lambda;
    lambda -= f / df;
    if (lambda <= 0.0) lambda = 0.001;
  }
  double left = 0, right = start;
  while (right < 100.0 && likelihood_slope(x, right).f > 0) right *= 2;
  for (int step = 0; step < kSteps; ++step) {
    lambda = (left + right) / 2;
    const double f = likelihood_slope(x, lambda).f;
    if (std::abs(f) < kTolerance) break;
    (f > 0 ? left : right) = lambda;
  }
  return lambda;
}

}  // namespace

Calibration calibrate(const Hmm& hmm) {
  const FlushToZeroScope flush;
  const Profile profile = make_profile(hmm);
  const ByteProfile bytes = make_byte_profile(profile);
  const WordProfile words = make_word_profile(profile);
  const OddsProfile odds = make_odds_profile(profile);
  const std::span<const float> background(hmm.alphabet->background.data(),
                                          static_cast<std::size_t>(hmm.alphabet->K));
  LinearCongruential random(42);  // one stream through all three simulations

  const auto simulate = [&](int length, auto&& score_of) {
    std::vector<double> bits;
    bits.reserve(kTargets);
    std::vector<Residue> target(static_cast<std::size_t>(length));
    const float null = null_score(length);
    for (int i = 0; i < kTargets; ++i) {
      for (Residue& x : target) x = static_cast<Residue>(random.choose(background));
      bits.push_back(static_cast<double>(score_of(target) - null) / kLn2);
    }
    return bits;
  };
  // An overflowing score counts as the largest one the filter can express.
  const auto limited = [](float score, float largest) {
    return score == std::numeric_limits<float>::infinity() ? largest : score;
  };

  const double lambda = kLn2 + 1.44 / (static_cast<double>(hmm.M) * mean_relative_entropy(hmm));
  const float largest_byte = static_cast<float>(255 - bytes.base) / bytes.scale;
  const auto msv = simulate(kFilterLength, [&](std::span<const Residue> target) {
    return limited(msv_filter(bytes, target), largest_byte);
  });
  const float largest_word = static_cast<float>(32767 - words.base) / words.scale;
  const auto viterbi = simulate(kFilterLength, [&](std::span<const Residue> target) {
    return limited(viterbi_filter(words, target), largest_word);
  });
  const auto forward = simulate(
      kForwardLength, [&](std::span<const Residue> target) { return forward_score(odds, target); });
  const double forward_lambda = gumbel_lambda(forward);
  const double forward_mu = gumbel_location(forward, forward_lambda);
  // The Gumbel's quantile at the tail mass, moved down to where an exponential of slope lambda
  // through that point reaches one.
  const double tau = forward_mu - std::log(-std::log(1.0 - kTailMass)) / forward_lambda +
                     std::log(kTailMass) / lambda;

  Calibration c;
  c.msv_lambda = c.viterbi_lambda = c.forward_lambda = static_cast<float>(lambda);
  c.msv_mu = static_cast<float>(gumbel_location(msv, lambda));
  c.viterbi_mu = static_cast<float>(gumbel_location(viterbi, lambda));
  c.forward_tau = static_cast<float>(tau);
  return c;
}

}  // namespace hmmjit::reference
