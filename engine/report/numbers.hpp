// Quantities that reports print, computed from stored hits.
#pragma once

#include <cmath>

#include "model/score_statistics.hpp"
#include "search/search.hpp"

namespace hmmjit {

inline double target_e_value(const Hit& hit, const HitList& hits) {
  return e_value(hit.score.log_p, hits.Z);
}
inline double conditional_e_value(const domain::Domain& domain, const HitList& hits) {
  return e_value(domain.log_p, hits.domZ);
}
inline double independent_e_value(const domain::Domain& domain, const HitList& hits) {
  return e_value(domain.log_p, hits.Z);
}
inline double bias_bits(const domain::Domain& domain) {
  return static_cast<double>(domain.bias_nats) * 1.44269504088896341;
}
/// Subtracts in float: zero gets HMMER's sign. A hit of nhmmer is one domain, with its bias.
inline float target_bias(const Hit& hit, const ModelResult& result) {
  return result.nucleotides ? static_cast<float>(bias_bits(hit.best_domain()))
                            : hit.score.pre_bits - hit.score.bits;
}
/// Column "acc": expected accuracy per residue of the envelope.
inline double mean_accuracy(const domain::Domain& domain) {
  return static_cast<double>(domain.accuracy_sum) /
         (1.0 + std::fabs(static_cast<float>(domain.jenv - domain.ienv)));
}

/// Calls `use(domain, number, included)` for each reported domain of a hit, numbered from 1.
template <typename Use>
void for_each_reported_domain(const Hit& hit, const Use& use) {
  int number = 0;
  for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
    const Hit::Flags& flags = hit.domain_flags[d];
    if (flags.reported) use(hit.score.domains[d], ++number, flags.included);
  }
}

}  // namespace hmmjit
