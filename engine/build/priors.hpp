// Dirichlet mixture priors.
#pragma once

#include <span>
#include <vector>

#include "model/alphabet.hpp"

namespace hmmjit::build {

/// A mixture of Dirichlet densities (Sjoelander et al. 1996) with precomputed gamma function
/// values.
class DirichletMixture {
 public:
  struct Component {
    double q = 1.0;
    std::vector<double> alpha;
  };
  explicit DirichletMixture(std::vector<Component> components);

  std::size_t size() const { return components_.front().alpha.size(); }
  /// Replaces counts by mean posterior probabilities, in HMMER's order of operations.
  void mean_posterior(std::span<float> counts) const;

 private:
  struct Density {
    double log_q = 0, alpha_sum = 0, alpha_total = 0;  // total: compensated
    double log_gamma_sum = 0;
    std::vector<double> log_gamma, absent;  // per alpha; absent: the term of a zero count
  };
  std::vector<Component> components_;
  std::vector<Density> densities_;
};

/// The priors of one kind of model.
struct Priors {
  DirichletMixture match, insert, match_transition, insert_transition, delete_transition;
};
/// HMMER's priors for proteins or nucleotides.
const Priors& mixture_priors(const Alphabet& alphabet);
/// Laplace's rule: all alphas are one.
const Priors& laplace_priors(const Alphabet& alphabet);

/// Natural logarithm of the gamma function by HMMER's approximation (Lanczos 1964).
double log_gamma(double x);

}  // namespace hmmjit::build
