// Plain scalar Forward: the oracle for every vector and GPU kernel, verified against hmmsearch.
#pragma once

#include <span>

#include "model/profile.hpp"

namespace hmmjit::reference {

/// The score in nats of a whole target for the multihit profile at the target's own length (-inf:
/// no path), with sums in the reference's four-lane order. Call it inside a FlushToZeroScope.
float forward_score(const OddsProfile& profile, std::span<const Residue> residues);

}  // namespace hmmjit::reference
