// Expected numbers of visits to a core model's states.
#pragma once

#include <vector>

#include "model/hmm.hpp"

namespace hmmjit {

/// [M+1]: probability that the match state of node k is visited (Eddy 2008, local entry); element 0
/// is unused.
std::vector<float> match_occupancy(const Hmm& hmm);

}  // namespace hmmjit
