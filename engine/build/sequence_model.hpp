// Builds a model from one sequence: each residue's node emits by substitution probability.
#pragma once

#include <span>
#include <string>

#include "build/built_model.hpp"
#include "build/score_system.hpp"

namespace hmmjit::build {

/// Builds a model of `residues` (codes of the score system's alphabet without gaps, at least one)
/// with composition and consensus; sets `needs_calibration`. Bit-identical to HMMER 3.4's phmmer
/// and nhmmer, except for the case of a degenerate last consensus letter: always lower here,
/// dependent on unrelated memory in HMMER. Cost: about 1 us per residue.
BuiltModel build_from_sequence(const ScoreSystem& system, std::string name,
                               std::span<const Residue> residues);

/// Sets the transition probabilities of all nodes from gap costs: `open` for those out of match
/// states, `extend` for those out of insert and delete states. Null: unchanged.
void set_gap_costs(Hmm& hmm, const double* open, const double* extend);

}  // namespace hmmjit::build
