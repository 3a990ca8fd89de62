// How often the states of a core model are visited.
#pragma once

#include <vector>

#include "model/hmm.hpp"

namespace hmmjit {

/// [M+1]: probability that the match state of node k is visited (Eddy 2008, local entry). Element 0
/// is unused.
std::vector<float> match_occupancy(const Hmm& hmm);

}  // namespace hmmjit
