#include "core/simd_targets.hpp"

#include "hwy/detect_targets.h"
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hmmjit {
namespace {

#if HWY_ARCH_X86
// Some compilers have no name for this feature: bit 29 of ECX, leaf 1 (Intel, Software Developer's
// Manual, volume 2, CPUID).
bool has_half_floats() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1u) != 0;
}
#endif

// Checks every extension that Highway may use for a target.
std::int64_t detect() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  const auto all = [](auto... has) { return (... && (has != 0)); };
  if (!all(__builtin_cpu_supports("sse4.1"), __builtin_cpu_supports("sse4.2"),
           __builtin_cpu_supports("pclmul"), __builtin_cpu_supports("aes")))
    return targets;
  targets |= HWY_SSE4;
  if (!all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
           __builtin_cpu_supports("bmi"), __builtin_cpu_supports("bmi2")) ||
      !has_half_floats())
    return targets;
  targets |= HWY_AVX2;
  if (all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
          __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512cd"),
          __builtin_cpu_supports("avx512vl")))
    targets |= HWY_AVX3;
#endif
  return targets;
}

}  // namespace

std::int64_t supported_simd_targets() {
  static const std::int64_t targets = detect();
  return targets;
}

}  // namespace hmmjit
