// Optimal accuracy alignment in log space.
#pragma once

#include <span>

#include "align/sequence_aligner.hpp"

namespace hmmjit::align {

/// SequenceAligner::align for a sequence whose probabilities overflow. Slow.
SequencePath align_in_log_space(const Profile& profile, std::span<const Residue> residues);

}  // namespace hmmjit::align
