// Score distribution parameters of a model that comes without them (HMMER2 import).
#pragma once

#include "model/hmm.hpp"

namespace hmmjit::reference {

/// Simulates random targets and fits the location of the MSV, Viterbi (Gumbel) and Forward
/// (exponential tail) score distributions; lambda follows from the model's relative entropy
/// (Eddy 2008). Deterministic, bit-identical to the reference's import: fixed seed, 200 targets per
/// distribution. Cost: about 100 000 cells per node, a fraction of a second for common models.
/// Thread-safe.
Calibration calibrate(const Hmm& hmm);

}  // namespace hmmjit::reference
