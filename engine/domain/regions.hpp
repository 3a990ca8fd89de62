// Where domains lie on a target: posterior decoding of begin, end and "inside" over the parser
// matrices, then regions, by HMMER3's thresholds (Eddy 2011).
#pragma once

#include <vector>

#include "domain/kernels.hpp"

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

/// Fills occupancy[0..L] from job.forward and job.backward of the multihit parser passes. False
/// when the decoding overflows; the target has no domains then.
bool decode_occupancy(const Job& job, Occupancy* occupancy);

/// Appends the regions of a decoded target.
void find_regions(const Occupancy* occupancy, int L, std::vector<Region>& regions);

}  // namespace hmmjit::domain
