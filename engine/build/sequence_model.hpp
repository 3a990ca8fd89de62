// A model from one sequence: every residue is a node, emissions are substitution probabilities.
#pragma once

#include <span>
#include <string>

#include "build/built_model.hpp"
#include "build/score_system.hpp"

namespace hmmjit::build {

/// Model of `residues` (codes of the score system's alphabet without gaps, at least one), named
/// `name`, with composition and consensus; its `needs_calibration` is set. Bit-identical to HMMER
/// 3.4's phmmer and nhmmer, except for the
/// case of a last consensus letter that is degenerate, which depends on unrelated memory there
/// and is lower case here. Cost: about 1 us per residue.
BuiltModel build_from_sequence(const ScoreSystem& system, std::string name,
                               std::span<const Residue> residues);

/// Sets transition probabilities of `hmm` from gap costs: `open` sets those out of match states,
/// `extend` those out of insert and delete states, of all nodes including the first and last. Null
/// leaves them unchanged.
void set_gap_costs(Hmm& hmm, const double* open, const double* extend);

}  // namespace hmmjit::build
