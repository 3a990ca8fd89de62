// Substitution matrices, built in or read from files.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "model/alphabet.hpp"

namespace hmmjit::build {

/// Integer log-odds scores; rows are query residues, columns are target residues.
struct SubstitutionMatrix {
  std::string name;  ///< of the matrix or its file
  const Alphabet* alphabet = nullptr;
  std::array<std::array<int, kMaxBases>, kMaxBases> scores{};
};

/// Names of the matrices for proteins (PAM30 to PAM240, BLOSUM45 to BLOSUM90) or nucleotides
/// (DNA1).
std::vector<std::string_view> matrix_names(const Alphabet& alphabet);
/// Fails with kUsage if the alphabet has no matrix of this name.
Result<SubstitutionMatrix> find_matrix(std::string_view name,
                                       const Alphabet& alphabet = amino_alphabet());

/// Reads a matrix in NCBI BLAST's format: '#' starts a comment; a line of one-letter column labels
/// in any order, which include all residues; then a line of integers per label in the same order,
/// each optionally preceded by the label. The matrix may be asymmetric. Scores of other symbols are
/// ignored. Fails with kInput; errors name `file`.
Result<SubstitutionMatrix> parse_matrix(std::string_view text, const std::string& file,
                                        const Alphabet& alphabet = amino_alphabet());

}  // namespace hmmjit::build
