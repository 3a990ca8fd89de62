// Weighted counts of emissions and transitions in an alignment.
#pragma once

#include <span>
#include <vector>

#include "model/hmm.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// Marks leading and trailing gaps of fragments as missing data. Fragments are rows with at most
/// `fragment` residues per column.
void mark_fragments(MultipleAlignment& alignment, float fragment);

/// Adds the counts of all rows to `hmm`, whose M, alphabet and zeroed parameters are set; `match`:
/// true for match columns.
void count_alignment(const MultipleAlignment& alignment, const std::vector<bool>& match,
                     std::span<const double> weights, Hmm& hmm);

}  // namespace hmmjit::build
