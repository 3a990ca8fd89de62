// The rows of an alignment as used to build a model, and their Stockholm text.
#pragma once

#include <string>
#include <vector>

#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// Value type.
struct AlignedRows {
  /// Residues of match columns in upper case, of insertions in lower case; `~` beyond the ends of
  /// fragments.
  std::vector<std::string> rows;
  std::string reference;        ///< `x` at match columns, `.` at the others
  std::vector<double> weights;  ///< relative weights of the rows
  bool weighted = false;        ///< weights were computed or given
};

/// Lays out the rows: residues at the nodes of their paths; insertions between two nodes are split
/// into halves, those before the first node are right-aligned. `alignment`: with fragments marked
/// and masked residues replaced; `match`: true for match columns. Does not set weights.
AlignedRows align_rows(const MultipleAlignment& alignment, const std::vector<bool>& match);

/// Appends the rows as hmmbuild -O writes them: name, accession and description of `alignment`,
/// weights, and blocks of 200 columns. If two rows have one name, all names are numbered.
void append_aligned_rows(std::string& out, const AlignedRows& rows,
                         const MultipleAlignment& alignment);

}  // namespace hmmjit::build
