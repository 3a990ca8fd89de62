// The rows of an alignment as a model was built from them, and their Stockholm text.
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
  bool weighted = false;        ///< they were computed or given, not just 1
};

/// Lays the rows out: residues at the nodes their paths use, insertions between two nodes divided
/// into halves, those before the first at its side. `alignment`: fragments are marked and masked
/// residues replaced; `match`: whether a column is a match column. Weights are not set.
AlignedRows align_rows(const MultipleAlignment& alignment, const std::vector<bool>& match);

/// Appends them as hmmbuild -O writes them: name, accession and description of `alignment`,
/// weights, and blocks of 200 columns. Row names that stand there twice make all of them numbered.
void append_aligned_rows(std::string& out, const AlignedRows& rows,
                         const MultipleAlignment& alignment);

}  // namespace hmmjit::build
