// Final hit lists: E-values, removal of duplicates, thresholds, order.
#pragma once

#include <span>
#include <vector>

#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// A hit, and the query whose thresholds judge it.
struct StoredHit {
  Hit hit;
  const Query* query;
};

/// Makes the list of a query, or of a target in Search::scan(). `hits`: in the order in which they
/// were found, with their final log_p. `by_name`: subjects are compared by name instead of index.
HitList finish_hits(std::vector<StoredHit> hits, bool by_name, const FilterCounters& counters,
                    bool column_scores);

/// The natural logarithm by which a search space of `residues` raises P-values of windows.
double log_search_space(double residues, int window_length);

}  // namespace hmmjit::nucleotide
