#include "build/score_system.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::build {
namespace {

std::unexpected<Error> no_lambda(const SubstitutionMatrix& matrix) {
  return fail(ErrorCode::kInput, "the scores have no scale at which they are log-odds", matrix.name,
              "give a matrix with positive scores and a negative expected score");
}

// Sum of the joint probabilities at a lambda, minus one, and its derivative.
struct Excess {
  double f = 0, df = 0;
};
Excess excess(const SubstitutionMatrix& matrix, double lambda) {
  const int K = matrix.alphabet->K;
  const auto& background = matrix.alphabet->background;
  Excess sum;
  for (int i = 0; i < K; ++i) {
    for (int j = 0; j < K; ++j) {
      const auto score = static_cast<double>(matrix.scores[i][j]);
      const double joint = static_cast<double>(background[i]) * static_cast<double>(background[j]) *
                           std::exp(lambda * score);
      sum.f += joint;
      sum.df += joint * score;
    }
  }
  sum.f -= 1.0;
  return sum;
}

Result<double> solve_lambda(const SubstitutionMatrix& matrix) {
  int largest = matrix.scores[0][0];
  for (const auto& row : matrix.scores)
    largest = std::max(largest, *std::max_element(row.begin(), row.end()));
  // A positive root exists only with a positive score and a negative mean.
  if (largest <= 0 || excess(matrix, 0.0).df >= 0) return no_lambda(matrix);
  // Starts beyond the positive root: must not find the root at zero.
  constexpr double kFarthest = 50.0;
  double lambda = 1.0 / largest;
  while (lambda < kFarthest && excess(matrix, lambda).f <= 0) lambda *= 2.0;
  if (lambda >= kFarthest) return no_lambda(matrix);

  constexpr int kSteps = 100;
  constexpr double kTolerance = 1e-15;
  Excess at = excess(matrix, lambda);
  for (int step = 0; step < kSteps; ++step) {
    const double before = lambda;
    lambda = lambda - at.f / at.df;
    at = excess(matrix, lambda);
    if (at.f == 0 || std::abs(lambda - before) < kTolerance + kTolerance * lambda) {
      if (!(lambda > 0)) break;
      return lambda;
    }
  }
  return no_lambda(matrix);
}

}  // namespace

Result<ScoreSystem> make_score_system(const SubstitutionMatrix& matrix,
                                      std::optional<double> gap_open,
                                      std::optional<double> gap_extend) {
  const bool protein = matrix.alphabet->type == AlphabetType::kAmino;
  ScoreSystem system;
  system.alphabet = matrix.alphabet;
  system.gap_open = gap_open.value_or(protein ? 0.02 : 0.03125);
  system.gap_extend = gap_extend.value_or(protein ? 0.4 : 0.75);
  HMMJIT_ASSIGN(system.lambda, solve_lambda(matrix));

  const Alphabet& alphabet = *matrix.alphabet;
  const int K = alphabet.K;
  const auto& background = alphabet.background;
  std::array<std::array<double, kMaxCodes>, kMaxCodes> joint{};
  for (int i = 0; i < K; ++i) {
    for (int j = 0; j < K; ++j)
      joint[i][j] = static_cast<double>(background[i]) * static_cast<double>(background[j]) *
                    std::exp(system.lambda * static_cast<double>(matrix.scores[i][j]));
  }
  // A degenerate code gets the sum over its possible residues: first columns, then rows.
  const auto each_degenerate = [&](auto&& use) {
    for (int d = K + 1; d <= alphabet.any(); ++d) {
      for (int x = 0; x < K; ++x) {
        if ((alphabet.degeneracy[d] >> x & 1) != 0) use(d, x);
      }
    }
  };
  for (int i = 0; i < K; ++i) each_degenerate([&](int d, int x) { joint[i][d] += joint[i][x]; });
  for (int j = 0; j < K; ++j) each_degenerate([&](int d, int x) { joint[d][j] += joint[x][j]; });
  for (int row = K + 1; row <= alphabet.any(); ++row)
    each_degenerate([&](int d, int x) { joint[row][d] += joint[row][x]; });

  for (int row = 0; row < alphabet.Kp; ++row) {
    const double marginal = joint[row][alphabet.any()];
    if (marginal == 0) continue;
    for (int x = 0; x < K; ++x) system.conditional[row][x] = joint[row][x] / marginal;
  }
  return system;
}

}  // namespace hmmjit::build
