// Plain scalar Forward: the oracle for every vector and GPU kernel, verified against hmmsearch.
#pragma once

#include <span>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::reference {

/// Forward over a whole target. `scale[i]` (0..L) is the divisor of row i, 1 if not scaled; `total`
/// is the sum of their logarithms in nats; `nats` is the score (-inf: no path).
struct ForwardResult {
  float nats = 0;
  float total = 0;
  std::vector<float> scale;
};
/// Sums in the reference's four-lane order. `length` sets the specials; the search uses
/// length_model(L, true). Call it inside a FlushToZeroScope.
ForwardResult forward(const OddsProfile& profile, std::span<const Residue> residues,
                      const LengthModel& length);
/// Score for the multihit profile at the target's own length.
float forward_score(const OddsProfile& profile, std::span<const Residue> residues);

}  // namespace hmmjit::reference
