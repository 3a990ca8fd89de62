// Builds a model from one sequence: each residue is a node that emits by substitution probability.
#pragma once

#include <span>
#include <string>

#include "build/built_model.hpp"
#include "build/score_system.hpp"

namespace hmmjit::build {

/// Model of `residues` (codes of the score system's alphabet without gaps, at least one) with
/// composition and consensus; sets `needs_calibration`. Bit-identical to HMMER 3.4's phmmer and
/// nhmmer, except for the case of a degenerate last consensus letter, which depends on unrelated
/// memory there and is lower case here. Cost: about 1 us per residue.
BuiltModel build_from_sequence(const ScoreSystem& system, std::string name,
                               std::span<const Residue> residues);

/// Sets transition probabilities of all nodes from gap costs: `open` those out of match states,
/// `extend` those out of insert and delete states. Null leaves them unchanged.
void set_gap_costs(Hmm& hmm, const double* open, const double* extend);

}  // namespace hmmjit::build
