// The paths of an alignment's rows through its model, and weighted counts of their emissions and
// transitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/hmm.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// kMissing: unknown, beyond the end of a fragment.
enum class Step : char { kBegin, kMatch, kDelete, kInsert, kMissing, kEnd };
struct PathElement {
  Step step;
  int k = 0;                 ///< 0 before the first node
  std::uint32_t column = 0;  ///< of the residue
};

/// Sets `path` to a row's path, from kBegin to kEnd; `match`: true for match columns. The model has
/// no transitions between insertions and deletions, so aligns an inserted residue next to a
/// deletion to the deleted node, unless `literal`.
void find_row_path(const MultipleAlignment& alignment, std::size_t row,
                   const std::vector<bool>& match, std::vector<PathElement>& path,
                   bool literal = false);

/// Marks leading and trailing gaps of fragments as missing data. Fragments are rows with at most
/// `fragment` residues per column.
void mark_fragments(MultipleAlignment& alignment, float fragment);

/// Adds the counts of all rows to `hmm`, which has M, alphabet and zeroed parameters; `match`: true
/// for match columns.
void count_alignment(const MultipleAlignment& alignment, const std::vector<bool>& match,
                     std::span<const double> weights, Hmm& hmm);

}  // namespace hmmjit::build
