// Optimal accuracy alignment with logarithms of probabilities, which do not overflow.
#pragma once

#include <span>

#include "align/sequence_aligner.hpp"

namespace hmmjit::align {

/// As SequenceAligner::align does it for a sequence whose probabilities overflow. Slow.
SequencePath align_in_log_space(const Profile& profile, std::span<const Residue> residues);

}  // namespace hmmjit::align
