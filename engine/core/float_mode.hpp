// The floating-point control register of a thread.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hmmjit {

#if defined(__x86_64__)
/// MXCSR.
using FloatMode = unsigned;
inline FloatMode float_mode() { return _mm_getcsr(); }
inline void set_float_mode(FloatMode mode) { _mm_setcsr(mode); }
/// Rounds to nearest, traps nothing, keeps subnormals.
inline constexpr FloatMode kDefaultFloatMode = 0x1f80;
/// Flushes subnormal results to zero; subnormal operands keep their value.
inline constexpr FloatMode kFlushToZero = 0x9f80;
#elif defined(__aarch64__)
/// FPCR.
using FloatMode = std::uint64_t;
inline FloatMode float_mode() {
  FloatMode mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_float_mode(FloatMode mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
inline constexpr FloatMode kDefaultFloatMode = 0;
/// FZ flushes subnormal results to zero. Unlike x86's mode it also treats subnormal operands as
/// zero; only the tables of models with probabilities below exp(-87) have any.
inline constexpr FloatMode kFlushToZero = FloatMode{1} << 24;
#else
#error "hmmjit runs on x86-64 and on 64-bit ARM"
#endif

/// Sets a mode for a scope, then restores the previous one. Destroy it on the thread that made it.
class FloatModeScope {
 public:
  explicit FloatModeScope(FloatMode mode) : before_(float_mode()) { set_float_mode(mode); }
  ~FloatModeScope() { set_float_mode(before_); }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  FloatMode before_;
};

}  // namespace hmmjit
