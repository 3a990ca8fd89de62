// Substitution probabilities that underlie a score matrix: what a single-sequence model emits.
#pragma once

#include <array>

#include "build/substitution_matrix.hpp"
#include "core/error.hpp"

namespace hmmjit::build {

/// Substitution matrix and gap costs of models built from one sequence.
struct ScoreSystem {
  const Alphabet* alphabet = nullptr;
  double lambda =
      0;  ///< scale of the scores: joint probabilities sum to one (Karlin & Altschul 1990)
  /// P(column residue | row code) for every code of the alphabet; rows of codes that are no
  /// residues ('-', '*', '~') are all zero.
  std::array<std::array<double, kMaxBases>, kMaxCodes> conditional{};
  double gap_open = 0.02;   ///< [0, 0.5)
  double gap_extend = 0.4;  ///< [0, 1)
};

/// Solves for lambda with the null model's background frequencies. Bit-identical to HMMER 3.4.
/// Fails with kInput when no positive lambda exists, as for a matrix without negative scores.
Result<ScoreSystem> make_score_system(const SubstitutionMatrix& matrix, double gap_open = 0.02,
                                      double gap_extend = 0.4);

}  // namespace hmmjit::build
