// Makes final hit lists: E-values, removal of duplicates, thresholds, order.
#pragma once

#include <span>
#include <vector>

#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// A hit, and the query whose thresholds apply to it.
struct StoredHit {
  Hit hit;
  const Query* query;
};

/// Makes the list of a query or, in Search::scan(), of a target. `hits`: in the order in which they
/// were found, with their final log_p. `by_name`: compares subjects by name instead of index.
HitList finish_hits(std::vector<StoredHit> hits, bool by_name, const FilterCounters& counters,
                    bool column_scores);

/// Natural log of the factor by which a search space of `residues` raises window P-values.
double log_search_space(double residues, int window_length);

}  // namespace hmmjit::nucleotide
