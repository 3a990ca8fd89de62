// One kernel launched on one device, its answers compared with the CPU's: whether a machine's
// driver, device and compiled kernels work together, asked without any file.
#pragma once

#include <memory>

#include "bench/bench.hpp"

namespace hmmjit::bench {

/// Positions of the model that self_check() searches with.
inline constexpr int kSelfCheckLength = 100;

/// Launches the kernel of `plan` (for kSelfCheckLength positions, which `kernels` must serve) on 64
/// targets of 1 to 400 residues, a third of them akin to the model, and their reversals.
/// Measurement::wrong counts the answers that differ from the CPU's, Measurement::refused says why
/// the kernel could not be run. Fails with kResources where the device has no memory, otherwise with
/// the driver's error.
Result<Measurement> self_check(std::shared_ptr<driver::Driver> driver, int ordinal,
                               gpu::KernelSource& kernels, const plan::Plan& plan);

}  // namespace hmmjit::bench
