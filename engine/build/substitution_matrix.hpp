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
/// HMMER's default matrix.
std::string_view usual_matrix(const Alphabet& alphabet);
/// Finds a built-in matrix. Fails with kUsage for a name that is not in matrix_names().
Result<SubstitutionMatrix> find_matrix(std::string_view name,
                                       const Alphabet& alphabet = amino_alphabet());

/// Size limit of a matrix file, in bytes.
inline constexpr std::size_t kLargestMatrixFile = std::size_t{1} << 20;
/// Reads a matrix in the format of NCBI BLAST: '#' starts a comment; a line of one-letter column
/// labels in any order, with all residues; then per label, in this order, a line of integers, with
/// or without the label in front. The matrix may be asymmetric. Ignores the scores of other
/// symbols. Fails with kInput; errors name `file`.
Result<SubstitutionMatrix> parse_matrix(std::string_view text, const std::string& file,
                                        const Alphabet& alphabet = amino_alphabet());

}  // namespace hmmjit::build
