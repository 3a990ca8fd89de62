// Locates domains on a target: posterior decoding of begin, end and "inside" from the parser
// matrices, then regions by HMMER3's thresholds (Eddy 2011).
#pragma once

#include <vector>

#include "domain/lanes.hpp"

namespace hmmjit::domain {

struct Region {
  int i, j;  ///< 1-based, inclusive
  bool multidomain;
};

/// Expected numbers of domain begins and ends up to a position, and the probability that the
/// position is inside a domain.
struct Occupancy {
  float begins, ends, inside;
};

/// Decodes rows 1..count of `forward` and `backward`; occupancy[0], which belongs to row 0, is
/// given. `scale` is that of the row before, or 1 / N of the target's row 0 at the start. Returns
/// that of the last row, infinite if decoding overflows. Of `job`, only its moves and own_scale are
/// used.
float decode_rows(const Job& job, const SpecialRows& forward, const SpecialRows& backward,
                  int count, float scale, Occupancy* occupancy);

/// State of the search for regions.
struct RegionSearch {
  int start = 0;  ///< start of a region that may have begun; 0: none
  bool triggered = false;
};
/// Appends the regions that end in rows first + 1 to last. occupancy[0] belongs to row `base`,
/// which must precede `search.start`.
void find_regions(const Occupancy* occupancy, int base, int first, int last, RegionSearch& search,
                  std::vector<Region>& regions);

}  // namespace hmmjit::domain
