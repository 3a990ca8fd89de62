// Substitution probabilities of a score matrix: the emissions of single-sequence models.
#pragma once

#include <array>
#include <optional>

#include "build/substitution_matrix.hpp"
#include "core/error.hpp"

namespace hmmjit::build {

/// Substitution matrix and gap costs for models built from one sequence.
struct ScoreSystem {
  const Alphabet* alphabet = nullptr;
  /// Scale of the scores at which the joint probabilities sum to one (Karlin & Altschul 1990).
  double lambda = 0;
  /// P(column residue | row code); the rows of '-', '*' and '~' are zero.
  std::array<std::array<double, kMaxBases>, kMaxCodes> conditional{};
  double gap_open = 0;    ///< [0, 0.5)
  double gap_extend = 0;  ///< [0, 1)
};

/// Solves for lambda with the null model's background frequencies. Default gap costs are HMMER's
/// for the alphabet. Bit-identical to HMMER 3.4. Fails with kInput if no positive lambda exists,
/// for example without negative scores.
Result<ScoreSystem> make_score_system(const SubstitutionMatrix& matrix,
                                      std::optional<double> gap_open,
                                      std::optional<double> gap_extend);

}  // namespace hmmjit::build
