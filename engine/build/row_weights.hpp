// Weights and clusters of the rows of an alignment.
#pragma once

#include <vector>

#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// Position-based weights (Henikoff & Henikoff 1994) over consensus columns, or over the RF columns
/// if `reference_columns` is set. They sum to the number of rows. A sample determines the consensus
/// columns of more than 50 000 rows.
std::vector<double> position_based_weights(const MultipleAlignment& alignment,
                                           bool reference_columns);
/// Weights from a UPGMA tree (Gerstein, Sonnhammer & Chothia 1994). Cubic time and quadratic memory
/// in the number of rows.
std::vector<double> tree_weights(const MultipleAlignment& alignment);
/// Weights by which each cluster at `identity` counts as one row (Henikoff & Henikoff 1992).
std::vector<double> cluster_weights(const MultipleAlignment& alignment, double identity);

/// Single-linkage clustering at a fractional pairwise identity of at least `identity`: sets the
/// index of each row's cluster and returns the number of clusters.
std::size_t cluster_rows(const MultipleAlignment& alignment, double identity,
                         std::vector<std::size_t>& cluster);

/// True if an RF character marks its column as a consensus column.
inline bool is_reference_column(char c) { return c != '-' && c != '_' && c != '.'; }
/// True for residues, including degenerate ones.
inline bool is_any_residue(const Alphabet& alphabet, int code) {
  return alphabet.is_residue(code) || alphabet.is_degenerate(code);
}

}  // namespace hmmjit::build
