#include "build/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "build/parameters.hpp"
#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "domain/domain.hpp"
#include "model/profile.hpp"
#include "model/random.hpp"

namespace hmmjit::build {
namespace {

constexpr double kLn2 = 0.69314718055994529;

// Maximum likelihood location of a Gumbel distribution with known lambda.
double gumbel_location(std::span<const double> x, double lambda) {
  double sum = 0;
  for (const double v : x) sum += std::exp(-lambda * v);
  return -std::log(sum / static_cast<double>(x.size())) / lambda;
}

// The likelihood equation for lambda and its derivative (Lawless 1982, 4.1.6).
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

// Maximum likelihood lambda of a Gumbel distribution, by Newton-Raphson from the moment estimate,
// or by bisection if that does not converge. Empty where HMMER finds none.
std::optional<double> gumbel_lambda(std::span<const double> x) {
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
  for (double f = likelihood_slope(x, lambda).f; f > 0; f = likelihood_slope(x, right).f) {
    right *= 2;
    if (right > 1000.0) return std::nullopt;
  }
  for (int step = 0; step < kSteps; ++step) {
    lambda = (left + right) / 2;
    const double f = likelihood_slope(x, lambda).f;
    if (std::abs(f) < kTolerance) return lambda;
    (f > 0 ? left : right) = lambda;
  }
  return std::nullopt;
}

// Random targets of equal length, each surrounded by padding for vector code.
struct Targets {
  int length = 0;
  std::vector<Residue> storage;
  std::vector<std::span<const Residue>> views;
};

struct Simulation {
  CalibrationOptions options;
  const Alphabet* alphabet = nullptr;
  Targets msv, viterbi, forward;
};

Targets simulate(LinearCongruential& random, std::span<const float> background, int length,
                 int count) {
  Targets targets;
  targets.length = length;
  const auto stride = static_cast<std::size_t>(length) + 1;
  targets.storage.assign(1 + stride * static_cast<std::size_t>(count), kPaddingCode);
  // From each bound on, a deviate gives a later residue.
  std::vector<double> bounds(background.begin(), background.end());
  std::partial_sum(bounds.begin(), bounds.end(), bounds.begin());
  const double norm = bounds.back();
  bounds.pop_back();
  for (double& bound : bounds) bound /= norm;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Residue* const residues = targets.storage.data() + 1 + i * stride;
    for (int j = 0; j < length; ++j) {
      const double deviate = random.uniform();
      residues[j] = static_cast<Residue>(
          std::ranges::count_if(bounds, [&](double bound) { return bound <= deviate; }));
    }
    targets.views.emplace_back(residues, static_cast<std::size_t>(length));
  }
  return targets;
}

// All models share the targets: drawing them takes longer than scoring them.
std::shared_ptr<const Simulation> simulation_of(const CalibrationOptions& options,
                                                const Alphabet& alphabet) {
  static std::mutex mutex;
  static std::shared_ptr<const Simulation> latest;
  const std::lock_guard lock(mutex);
  if (latest != nullptr && latest->options == options && latest->alphabet == &alphabet)
    return latest;
  auto made = std::make_shared<Simulation>();
  made->options = options;
  made->alphabet = &alphabet;
  const std::span<const float> background(alphabet.background.data(),
                                          static_cast<std::size_t>(alphabet.K));
  LinearCongruential random(options.seed);  // one stream for all three distributions
  made->msv = simulate(random, background, options.msv_length, options.msv_targets);
  made->viterbi = simulate(random, background, options.viterbi_length, options.viterbi_targets);
  made->forward = simulate(random, background, options.forward_length, options.forward_targets);
  latest = made;
  return made;
}

}  // namespace

Result<Calibration> calibrate(const Hmm& hmm, const CalibrationOptions& options) {
  if (std::min({options.msv_targets, options.viterbi_targets, options.forward_targets}) < 2)
    return fail(ErrorCode::kUsage, "a distribution cannot be fitted to fewer than two scores",
                "--EmN, --EvN, --EfN", "simulate more targets; HMMER's default is 200");
  const FlushToZeroScope flush;
  const auto simulation = simulation_of(options, *hmm.alphabet);
  const auto model = make_search_model(hmm);
  const cpu::FilterTables filters(*model);
  cpu::FilterScratch scratch;

  const auto bits = [](const Targets& targets, auto&& score_of) {
    std::vector<double> values;
    values.reserve(targets.views.size());
    const float null = null_score(targets.length);
    for (std::size_t i = 0; i < targets.views.size(); ++i)
      values.push_back(static_cast<double>(score_of(i) - null) / kLn2);
    return values;
  };
  // An overflow counts as the largest score of the filter.
  const auto limited = [](float score, float largest) {
    return score == std::numeric_limits<float>::infinity() ? largest : score;
  };

  const double lambda = kLn2 + 1.44 / (static_cast<double>(hmm.M) * mean_relative_entropy(hmm));
  const float largest_byte = static_cast<float>(255 - model->bytes.base) / model->bytes.scale;
  const auto msv = bits(simulation->msv, [&](std::size_t i) {
    return limited(filters.msv_filter(simulation->msv.views[i], scratch), largest_byte);
  });
  const float largest_word = static_cast<float>(32767 - model->words.base) / model->words.scale;
  const auto viterbi = bits(simulation->viterbi, [&](std::size_t i) {
    return limited(filters.viterbi_filter(simulation->viterbi.views[i], scratch), largest_word);
  });
  const domain::ForwardTables forward_tables(*model);
  domain::Workspace workspace;
  std::vector<float> forward_nats(simulation->forward.views.size());
  domain::forward_filter_batch(forward_tables, simulation->forward.views, forward_nats, workspace);
  const auto forward = bits(simulation->forward, [&](std::size_t i) { return forward_nats[i]; });
  const std::optional<double> forward_lambda = gumbel_lambda(forward);
  if (!forward_lambda || std::isinf(lambda))
    return fail(ErrorCode::kInput,
                "no distribution fits the Forward scores of random sequences, so that there are no "
                "E-values",
                "model " + hmm.name,
                "leave out alignments without residues or information, and change --eset; without "
                "a prior (--pnone) every residue must occur in the alignment");
  const double forward_mu = gumbel_location(forward, *forward_lambda);
  // The tail's origin: the Gumbel's quantile at the tail mass, moved down to the score at which an
  // exponential of slope lambda through this point reaches one.
  const double tau = forward_mu - std::log(-std::log(1.0 - options.tail_mass)) / *forward_lambda +
                     std::log(options.tail_mass) / lambda;

  Calibration c;
  c.msv_lambda = c.viterbi_lambda = c.forward_lambda = static_cast<float>(lambda);
  c.msv_mu = static_cast<float>(gumbel_location(msv, lambda));
  c.viterbi_mu = static_cast<float>(gumbel_location(viterbi, lambda));
  c.forward_tau = static_cast<float>(tau);
  return c;
}

Status calibrate_if_needed(Hmm& hmm, const CalibrationOptions& options) {
  if (!hmm.needs_calibration) return {};
  HMMJIT_ASSIGN(hmm.calibration, calibrate(hmm, options));
  hmm.needs_calibration = false;
  return {};
}

}  // namespace hmmjit::build
