// Final hit lists: removes duplicates, applies thresholds, sorts.
#pragma once

#include <vector>

#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// The hit list of a query or, in a Scan, of a target. `hits`: in search order, with final log_p.
/// `by_name`: compares subjects by name instead of index. `scores`: the model of all hits, to
/// compute column scores; null: none.
HitList finish_hits(std::vector<StoredHit> hits, bool by_name, const FilterCounters& counters,
                    const SearchModel* scores);

/// Natural log of the factor by which a search space of `residues` raises window P-values.
double log_search_space(double residues, int window_length);

}  // namespace hmmjit::nucleotide
