// P-values and E-values of bit scores (Eddy 2008), with HMMER's exact operations.
#pragma once

#include <limits>

namespace hmmjit {

/// P(S > x) of a Gumbel distribution; x, mu and lambda are floats widened to double (Eddy 2008).
double gumbel_survival(double x, double mu, double lambda);
/// P(S > x) of an exponential tail and its natural log.
double exponential_survival(double x, double tau, double lambda);
double exponential_log_survival(double x, double tau, double lambda);
/// E-value of a P-value whose logarithm is `log_p`. Like in hmmsearch, results below the smallest
/// normal double are zero, whatever the mode of the thread.
double e_value(double log_p, double search_space = 1);
/// Converts a difference of scores from nats to bits: divides by ln 2 in double, rounds to float.
float nats_to_bits(float nats);

/// Bit scores between which "P > limit" must be evaluated: scores below `rejects` fail, scores
/// above `passes` pass. Wide enough for any rounding of the score and its P-value; both infinite if
/// the distribution has no such bounds.
struct ScoreBand {
  float rejects = -std::numeric_limits<float>::infinity();
  float passes = std::numeric_limits<float>::infinity();
};
ScoreBand gumbel_band(double mu, double lambda, double limit);
ScoreBand exponential_band(double tau, double lambda, double limit);

/// Decides "P > limit" for one Gumbel distribution, exactly as gumbel_survival would. Computes
/// exponentials only for scores within a band.
class PValueGate {
 public:
  PValueGate(double mu, double lambda, double limit)
      : mu_(mu), lambda_(lambda), limit_(limit), band_(gumbel_band(mu, lambda, limit)) {}
  /// True if gumbel_survival(bits) > limit.
  bool rejects(float bits) const {
    if (bits < band_.rejects) return true;
    if (bits > band_.passes) return false;
    return gumbel_survival(bits, mu_, lambda_) > limit_;
  }

 private:
  double mu_, lambda_, limit_;
  ScoreBand band_;
};

}  // namespace hmmjit
