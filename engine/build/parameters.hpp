// Relative entropy and composition of a core model, and compensated sums.
#pragma once

#include <span>

#include "model/hmm.hpp"

namespace hmmjit::build {

/// Mean relative entropy of the match emissions against the background, bits per node.
double mean_relative_entropy(const Hmm& hmm);

/// Sets `compo`, the mean composition of emitted sequences: weights each state by its expected
/// number of visits.
void set_composition(Hmm& hmm);

/// Compensated sum (Kahan 1965) in double precision, in order.
double compensated_sum(std::span<const double> values);
/// Divides by the compensated sum; if it is zero, all values become equal.
void normalise(std::span<double> values);

}  // namespace hmmjit::build
