// Single-precision operations of the Forward and bias kernels, and their lists of targets.
#ifndef HMMJIT_KERNEL_FLOAT_FILTER_CUH_
#define HMMJIT_KERNEL_FLOAT_FILTER_CUH_

#include "common/intrinsics.cuh"
#include "common/late_params.h"

namespace hmmjit_device {

#ifdef HMMJIT_LOCKSTEP

inline u32 float_bits(float v) { return __builtin_bit_cast(u32, v); }
inline float bits_float(u32 v) { return __builtin_bit_cast(float, v); }
inline float multiply(float a, float b) { return a * b; }
inline float add(float a, float b) { return a + b; }
inline float multiply_add(float a, float b, float c) { return a * b + c; }
inline float divide(float a, float b) { return a / b; }
inline double natural_log(double v) { return __builtin_log(v); }

#else

HMMJIT_DEVICE u32 float_bits(float v) { return __float_as_uint(v); }
HMMJIT_DEVICE float bits_float(u32 v) { return __uint_as_float(v); }
// Rounded separately, never contracted to a fused multiply-add.
HMMJIT_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }
HMMJIT_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
HMMJIT_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HMMJIT_DEVICE float divide(float a, float b) { return __fdiv_rn(a, b); }
HMMJIT_DEVICE double natural_log(double v) { return log(v); }

#endif

HMMJIT_DEVICE float shuffle_float(float value, u32 lane) {
  return bits_float(shuffle(float_bits(value), lane));
}
HMMJIT_DEVICE float shuffle_float_xor(float value, u32 mask) {
  return bits_float(shuffle_xor(float_bits(value), mask));
}

HMMJIT_DEVICE u32 list_count(const TargetList& list) {
  return list.count ? *list.count : list.fixed_count;
}
HMMJIT_DEVICE u32 list_target(const TargetList& list, u32 slot) {
  return list.targets ? list.targets[slot * list.stride] : slot;
}

/// Odds of node `node` (0-based), 0 beyond the model.
HMMJIT_DEVICE float odds_transition(const FloatFilterParams& p, WordTransition which, int node) {
  if (node < 0 || node >= static_cast<int>(p.model_length)) return 0.0f;
  return p.transitions[static_cast<u32>(which) * p.stride + static_cast<u32>(node)];
}

/// Rows whose end score exceeds this are rescaled by it.
HMMJIT_DEVICE constexpr float scale_above() { return 1.0e4f; }

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_FLOAT_FILTER_CUH_
