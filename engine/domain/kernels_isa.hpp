// Kernel tables of the instruction sets, narrowest first.
#pragma once

#include "domain/kernels.hpp"

namespace hmmjit::domain {
extern const Kernels kKernelsSse2[2];
extern const Kernels kKernelsAvx2[3];
extern const Kernels kKernelsAvx512[4];
}  // namespace hmmjit::domain
