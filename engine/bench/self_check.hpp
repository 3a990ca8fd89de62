// Launches one kernel on one device and compares its answers with the CPU's, to check without any
// input file that driver, device and compiled kernels work together.
#pragma once

#include <memory>

#include "bench/bench.hpp"

namespace hmmjit::bench {

/// Length of the model that self_check() uses.
inline constexpr int kSelfCheckLength = 100;

/// Launches the kernel of `plan` (for kSelfCheckLength positions, which `kernels` must serve) on 64
/// targets of 1 to 400 residues, a third of them related to the model, and on their reversals.
/// Measurement::wrong counts answers that differ from the CPU's; Measurement::refused says why the
/// kernel was not run. Fails with kResources if the device lacks memory, otherwise with the
/// driver's error.
Result<Measurement> self_check(std::shared_ptr<driver::Driver> driver, int ordinal,
                               gpu::KernelSource& kernels, const plan::Plan& plan);

}  // namespace hmmjit::bench
