#include "build/priors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "build/parameters.hpp"

namespace hmmjit::build {
namespace {

constexpr std::size_t kResidues = 20;

// Match emissions of proteins: nine components; residues are in the order ACDEFGHIKLMNPQRSTVWY
// (Sjoelander et al. 1996).
struct MatchComponent {
  double q;
  std::array<double, kResidues> alpha;
};
// clang-format off
constexpr std::array<MatchComponent, 9> kMatch = {{
    {0.178091, {0.270671, 0.039848, 0.017576, 0.016415, 0.014268, 0.131916, 0.012391, 0.022599, 0.020358, 0.030727, 0.015315, 0.048298, 0.053803, 0.020662, 0.023612, 0.216147, 0.147226, 0.065438, 0.003758, 0.009621}},
    {0.056591, {0.021465, 0.010300, 0.011741, 0.010883, 0.385651, 0.016416, 0.076196, 0.035329, 0.013921, 0.093517, 0.022034, 0.028593, 0.013086, 0.023011, 0.018866, 0.029156, 0.018153, 0.036100, 0.071770, 0.419641}},
    {0.0960191, {0.561459, 0.045448, 0.438366, 0.764167, 0.087364, 0.259114, 0.214940, 0.145928, 0.762204, 0.247320, 0.118662, 0.441564, 0.174822, 0.530840, 0.465529, 0.583402, 0.445586, 0.227050, 0.029510, 0.121090}},
    {0.0781233, {0.070143, 0.011140, 0.019479, 0.094657, 0.013162, 0.048038, 0.077000, 0.032939, 0.576639, 0.072293, 0.028240, 0.080372, 0.037661, 0.185037, 0.506783, 0.073732, 0.071587, 0.042532, 0.011254, 0.028723}},
    {0.0834977, {0.041103, 0.014794, 0.005610, 0.010216, 0.153602, 0.007797, 0.007175, 0.299635, 0.010849, 0.999446, 0.210189, 0.006127, 0.013021, 0.019798, 0.014509, 0.012049, 0.035799, 0.180085, 0.012744, 0.026466}},
    {0.0904123, {0.115607, 0.037381, 0.012414, 0.018179, 0.051778, 0.017255, 0.004911, 0.796882, 0.017074, 0.285858, 0.075811, 0.014548, 0.015092, 0.011382, 0.012696, 0.027535, 0.088333, 0.944340, 0.004373, 0.016741}},
    {0.114468, {0.093461, 0.004737, 0.387252, 0.347841, 0.010822, 0.105877, 0.049776, 0.014963, 0.094276, 0.027761, 0.010040, 0.187869, 0.050018, 0.110039, 0.038668, 0.119471, 0.065802, 0.025430, 0.003215, 0.018742}},
    {0.0682132, {0.452171, 0.114613, 0.062460, 0.115702, 0.284246, 0.140204, 0.100358, 0.550230, 0.143995, 0.700649, 0.276580, 0.118569, 0.097470, 0.126673, 0.143634, 0.278983, 0.358482, 0.661750, 0.061533, 0.199373}},
    {0.234585, {0.005193, 0.004039, 0.006722, 0.006121, 0.003468, 0.016931, 0.003647, 0.002184, 0.005019, 0.005990, 0.001473, 0.004158, 0.009055, 0.003630, 0.006583, 0.003172, 0.003690, 0.002967, 0.002772, 0.002686}},
}};
// clang-format on
// Insert emissions: the alphas are so large that counts hardly matter.
constexpr std::array<double, kResidues> kInsert = {681, 120, 623, 651, 313, 902, 241,
                                                   371, 687, 676, 143, 548, 647, 415,
                                                   551, 926, 623, 505, 102, 269};

std::vector<DirichletMixture::Component> one(std::vector<double> alpha) {
  return {{1.0, std::move(alpha)}};
}

Priors make_amino_priors() {
  std::vector<DirichletMixture::Component> match;
  for (const MatchComponent& component : kMatch)
    match.push_back({component.q, {component.alpha.begin(), component.alpha.end()}});
  return {.match = DirichletMixture(std::move(match)),
          .insert = DirichletMixture(one({kInsert.begin(), kInsert.end()})),
          .match_transition = DirichletMixture(one({0.7939, 0.0278, 0.0135})),
          .insert_transition = DirichletMixture(one({0.1551, 0.1331})),
          .delete_transition = DirichletMixture(one({0.9002, 0.5630}))};
}

Priors make_nucleic_priors() {
  return {.match = DirichletMixture({{0.24, {0.16, 0.45, 0.12, 0.39}},
                                     {0.26, {0.09, 0.03, 0.09, 0.04}},
                                     {0.08, {1.29, 0.40, 6.58, 0.51}},
                                     {0.42, {1.74, 1.49, 1.57, 1.95}}}),
          .insert = DirichletMixture(one({1.0, 1.0, 1.0, 1.0})),
          .match_transition = DirichletMixture(one({2.0, 0.1, 0.1})),
          .insert_transition = DirichletMixture(one({0.12, 0.4})),
          .delete_transition = DirichletMixture(one({0.5, 1.0}))};
}

Priors make_laplace_priors(std::size_t residues) {
  const auto ones = [](std::size_t n) {
    return DirichletMixture(one(std::vector<double>(n, 1.0)));
  };
  return {.match = ones(residues),
          .insert = ones(residues),
          .match_transition = ones(3),
          .insert_transition = ones(2),
          .delete_transition = ones(2)};
}

}  // namespace

double log_gamma(double x) {
  constexpr double kCoefficients[] = {
      4.694580336184385e+04, -1.560605207784446e+05, 2.065049568014106e+05, -1.388934775095388e+05,
      5.031796415085709e+04, -9.601592329182778e+03, 8.785855930895250e+02, -3.155153906098611e+01,
      2.908143421162229e-01, -2.319827630494973e-04, 1.251639670050933e-10};
  const double xx = x - 1.0;
  double tx = xx + 11.0, tmp = tx, value = 1.0;
  for (int i = 10; i >= 0; --i) {
    value += kCoefficients[i] / tmp;
    tmp -= 1.0;
  }
  value = std::log(value);
  tx += 0.5;
  value += 0.918938533 + (xx + 0.5) * std::log(tx) - tx;
  return value;
}

DirichletMixture::DirichletMixture(std::vector<Component> components)
    : components_(std::move(components)) {
  for (const Component& component : components_) {
    Density& density = densities_.emplace_back();
    density.log_q = std::log(component.q);
    for (const double alpha : component.alpha) {
      density.alpha_sum += alpha;
      const double value = build::log_gamma(alpha);
      density.log_gamma.push_back(value);
      density.absent.push_back((build::log_gamma(alpha + 0.0) - build::log_gamma(0.0 + 1)) - value);
    }
    density.alpha_total = compensated_sum(component.alpha);
    density.log_gamma_sum = build::log_gamma(density.alpha_sum);
  }
}

void DirichletMixture::mean_posterior(std::span<float> counts) const {
  const std::size_t n = counts.size();
  std::array<double, kResidues> c{}, log_factorial{}, p{};
  double count_sum = 0;
  for (std::size_t a = 0; a < n; ++a) {
    c[a] = static_cast<double>(counts[a]);
    count_sum += c[a];
    if (c[a] != 0) log_factorial[a] = build::log_gamma(c[a] + 1);
  }
  const double log_factorial_sum = build::log_gamma(count_sum + 1);

  // Log posterior of each component, up to a constant.
  std::vector<double> w(components_.size());
  for (std::size_t j = 0; j < w.size(); ++j) {
    const Density& density = densities_[j];
    const std::vector<double>& alpha = components_[j].alpha;
    double log_p = 0, sum = 0;
    for (std::size_t a = 0; a < n; ++a) {
      sum += c[a] + alpha[a];
      log_p += c[a] == 0
                   ? density.absent[a]
                   : (build::log_gamma(alpha[a] + c[a]) - log_factorial[a]) - density.log_gamma[a];
    }
    log_p += (density.log_gamma_sum + log_factorial_sum) - build::log_gamma(sum);
    w[j] = density.log_q + log_p;
  }
  const double largest = *std::max_element(w.begin(), w.end());
  double total = 0;
  for (const double l : w) {
    if (l > largest - 500.0) total += std::exp(l - largest);
  }
  total = std::log(total) + largest;
  for (double& l : w) l = std::exp(l - total);
  normalise(w);

  const double count_total = compensated_sum({c.data(), n});
  for (std::size_t j = 0; j < w.size(); ++j) {
    for (std::size_t a = 0; a < n; ++a)
      p[a] += (w[j] * (c[a] + components_[j].alpha[a])) / (count_total + densities_[j].alpha_total);
  }
  normalise(std::span<double>(p.data(), n));
  for (std::size_t a = 0; a < n; ++a) counts[a] = static_cast<float>(p[a]);
}

const Priors& mixture_priors(const Alphabet& alphabet) {
  static const Priors amino = make_amino_priors(), nucleic = make_nucleic_priors();
  return alphabet.type == AlphabetType::kAmino ? amino : nucleic;
}

const Priors& laplace_priors(const Alphabet& alphabet) {
  static const Priors amino = make_laplace_priors(kResidues), nucleic = make_laplace_priors(4);
  return alphabet.type == AlphabetType::kAmino ? amino : nucleic;
}

}  // namespace hmmjit::build
