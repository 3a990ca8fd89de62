// Relative entropy and composition of a core model, and compensated sums.
#pragma once

#include <span>

#include "model/hmm.hpp"

namespace hmmjit::build {

/// Mean relative entropy of the match emissions against the background, bits per node.
double mean_relative_entropy(const Hmm& hmm);

/// Sets `compo`: the mean composition of emitted sequences, each state weighted by its expected
/// number of visits.
void set_composition(Hmm& hmm);

/// Compensated (Kahan 1965) sum in double, in order.
double compensated_sum(std::span<const double> values);
/// Divides by the compensated sum; values that sum to zero become uniform.
void normalise(std::span<double> values);

}  // namespace hmmjit::build
