#include "build/parameters.hpp"

#include <cmath>
#include <vector>

#include "model/numeric.hpp"

namespace hmmjit::build {

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

void set_composition(Hmm& hmm) {
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  const std::vector<float> match = match_occupancy(hmm);
  hmm.compo.fill(0.0f);
  const auto add_inserts = [&](std::size_t k, float occupancy) {
    for (std::size_t x = 0; x < K; ++x) hmm.compo[x] += hmm.insert[k * K + x] * occupancy;
  };
  add_inserts(0, hmm.t(0, kMI) / hmm.t(0, kIM));
  for (int k = 1; k <= hmm.M; ++k) {
    const float visits = match[static_cast<std::size_t>(k)];
    for (int x = 0; x < hmm.alphabet->K; ++x)
      hmm.compo[static_cast<std::size_t>(x)] += hmm.match_p(k, x) * visits;
    add_inserts(static_cast<std::size_t>(k), visits * hmm.t(k, kMI) / hmm.t(k, kIM));
  }
  hmmjit::normalise(std::span<float>(hmm.compo.data(), K));
}

double compensated_sum(std::span<const double> values) {
  double sum = 0, correction = 0;
  for (const double v : values) {
    const double y = v - correction;
    const double t = sum + y;
    correction = (t - sum) - y;
    sum = t;
  }
  return sum;
}

void normalise(std::span<double> values) {
  const double sum = compensated_sum(values);
  for (double& v : values) v = sum == 0.0 ? 1.0 / static_cast<double>(values.size()) : v / sum;
}

}  // namespace hmmjit::build
