// A model's Forward and bias filter tables in the layout that filter kernels read
// (kernel_templates/common/late_params.h), and bounds on the kernels' rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/late_params.h"
#include "model/profile.hpp"

namespace hmmjit::layout {

/// Match odds in HMMER's lanes (Farrar 2007), [32][Q][4]: node r*Q + q + 1 is at q*4 + r.
std::vector<float> make_striped_emissions(const OddsProfile& profile);
/// Striped odds for kernels with one warp per HMMER lane and `run` stripes per thread
/// (DomainParams::run_emissions).
std::vector<float> make_run_emissions(std::span<const float> striped, std::size_t Q,
                                      std::uint32_t run);

/// N, C and J odds for target lengths.
std::vector<hmmjit_device::FloatLength> make_float_lengths(std::span<const std::uint32_t> lengths,
                                                           bool multihit = true);

/// Nats by which Forward kernels, which sum in a different order, may differ from HMMER for
/// a target of L residues; scores this close to the threshold are decided on the CPU. Every row
/// adds at most some tens of roundings of 2^-24 to each sum, and all terms are positive; measured
/// differences are a hundredth of this bound.
float forward_guard(int L);
inline constexpr float kForwardGuard = 1e-3f;
inline constexpr float kForwardGuardPerResidue = 64.0f * 0x1p-24f;

/// [2][32] odds of the bias filter's states; 1 for codes outside the alphabet.
std::vector<float> make_bias_odds(const BiasModel& model);
std::vector<float> make_bias_lengths(std::span<const std::uint32_t> lengths);

/// The bias filter's score in nats from a kernel's sum of logarithms.
float bias_nats(float sum, int L);
/// Nats by which bias_nats may differ from HMMER, which rounds its sum to float after every
/// residue, each time by at most half a unit in the last place of the largest partial sum.
float bias_guard(float sum, int L);

}  // namespace hmmjit::layout
