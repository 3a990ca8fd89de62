// Substitution matrices: built in, or read from files.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "model/alphabet.hpp"

namespace hmmjit::build {

/// Integer log-odds scores of the residues; row: residue of the query, column: of the target.
struct SubstitutionMatrix {
  std::string name;  ///< of the matrix or its file
  const Alphabet* alphabet = nullptr;
  std::array<std::array<int, kMaxBases>, kMaxBases> scores{};
};

/// Names of the matrices of amino acids (PAM30 to PAM240, BLOSUM45 to BLOSUM90) or nucleotides
/// (DNA1).
std::vector<std::string_view> matrix_names(const Alphabet& alphabet);
/// Fails with kUsage for a name that is not among those of the alphabet.
Result<SubstitutionMatrix> find_matrix(std::string_view name,
                                       const Alphabet& alphabet = amino_alphabet());

/// Reads a matrix in the format of NCBI BLAST: '#' starts a comment; a line of one-letter labels of
/// columns, all residues among them in any order; one line of integers per label in the same
/// order, with or without the label in front. Rows need not equal columns. Scores of other symbols
/// are ignored. Errors name `file`. Fails with kInput.
Result<SubstitutionMatrix> parse_matrix(std::string_view text, const std::string& file,
                                        const Alphabet& alphabet = amino_alphabet());

}  // namespace hmmjit::build
