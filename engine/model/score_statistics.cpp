#include "model/score_statistics.hpp"

#include <cmath>
#include <limits>

namespace hmmjit {

double gumbel_survival(double x, double mu, double lambda) {
  const double y = lambda * (x - mu);
  const double e = std::exp(-y);
  // 1 - exp(-e) loses all digits for small e, where it equals e.
  return e < 5e-9 ? e : 1.0 - std::exp(-e);
}

double exponential_survival(double x, double tau, double lambda) {
  return x < tau ? 1.0 : std::exp(-lambda * (x - tau));
}

double exponential_log_survival(double x, double tau, double lambda) {
  return x < tau ? 0.0 : -lambda * (x - tau);
}

double e_value(double log_p, double search_space) {
  const auto flushed = [](double x) { return x < std::numeric_limits<double>::min() ? 0.0 : x; };
  return flushed(flushed(std::exp(log_p)) * search_space);
}

float nats_to_bits(float nats) {
  return static_cast<float>(static_cast<double>(nats) / 0.69314718055994529);
}

namespace {

// False if P may not decrease strictly with the score: the limit is within rounding of 0 or 1, or
// the calibration is no distribution. Then every score is evaluated.
bool is_regular(double location, double lambda, double limit) {
  return limit > 1e-300 && limit < 0.999999 && lambda > 1e-3 && lambda < 1e3 &&
         std::abs(location) < 1e4;
}

ScoreBand band_around(double deciding, double lambda) {
  // 0.01 bit changes P by nearly one percent, far more than any rounding.
  const double margin = 0.01 + 0.01 / lambda;
  return {static_cast<float>(deciding - margin), static_cast<float>(deciding + margin)};
}

// No probability exceeds 1.
constexpr ScoreBand kAllPass{-std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()};

}  // namespace

ScoreBand gumbel_band(double mu, double lambda, double limit) {
  if (limit >= 1.0) return kAllPass;
  if (!is_regular(mu, lambda, limit)) return {};
  return band_around(mu - std::log(-std::log1p(-limit)) / lambda, lambda);
}

ScoreBand exponential_band(double tau, double lambda, double limit) {
  if (limit >= 1.0) return kAllPass;
  if (!is_regular(tau, lambda, limit)) return {};
  return band_around(tau - std::log(limit) / lambda, lambda);
}

}  // namespace hmmjit
