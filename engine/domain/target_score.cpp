#include "domain/target_score.hpp"

#include <cmath>

#include "model/numeric.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::domain {

void score_target(const SearchModel& model, bool null2, int L, float forward_nats,
                  const float* correction, TargetScore& score) {
  // omega, the prior of the null2 hypothesis, is 1/256.
  static const double log_omega = std::log(1.0 / 256.0);
  const auto bias = [&](float nats) {
    return null2 ? table_log_sum(0.0f, static_cast<float>(log_omega + static_cast<double>(nats)))
                 : 0.0f;
  };
  const Calibration& c = model.hmm.calibration;
  const auto log_p = [&](float bits) {
    return exponential_log_survival(static_cast<double>(bits), static_cast<double>(c.forward_tau),
                                    static_cast<double>(c.forward_lambda));
  };
  const float null = null_score(L);
  CompensatedSum total;
  for (int i = 0; i <= L; ++i) total.add(correction[i]);
  score.correction_nats = total.value();
  score.pre_bits = nats_to_bits(forward_nats - null);
  score.bits = nats_to_bits(forward_nats - (null + bias(total.value())));
  // Each residue outside the envelopes costs one step of the flanking states.
  const double step =
      std::log(static_cast<double>(static_cast<float>(L) / static_cast<float>(L + 3)));
  float sum = 0, sum_correction = 0;
  int covered = 0;
  for (const Domain& d : score.domains) {
    const bool positive = null2 ? d.envelope_nats - d.correction_nats > 0 : d.envelope_nats > 0;
    if (!positive) continue;
    sum += d.envelope_nats;
    covered += d.jenv - d.ienv + 1;
    sum_correction += d.correction_nats;
  }
  sum = static_cast<float>(static_cast<double>(sum) + static_cast<double>(L - covered) * step);
  const float sum_bits = nats_to_bits(sum - (null + bias(sum_correction)));
  if (covered > 0 && sum_bits > score.bits) {
    score.bits = sum_bits;
    score.pre_bits = nats_to_bits(sum - null);
  }
  score.log_p = log_p(score.bits);

  score.best_domain = 0;
  for (std::size_t d = 0; d < score.domains.size(); ++d) {
    Domain& domain = score.domains[d];
    const int length = domain.jenv - domain.ienv + 1;
    const float whole = static_cast<float>(static_cast<double>(domain.envelope_nats) +
                                           static_cast<double>(L - length) * step);
    domain.bias_nats = bias(domain.correction_nats);
    domain.bits = nats_to_bits(whole - (null + domain.bias_nats));
    domain.log_p = log_p(domain.bits);
    if (domain.bits > score.domains[score.best_domain].bits) score.best_domain = d;
  }
}

}  // namespace hmmjit::domain
