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

/// The control bits of a thread's floating-point units, without the flags of exceptions. Includes
/// x86's older unit, whose rounding printf and strtod obey.
struct FloatControl {
  FloatMode mode = kDefaultFloatMode;
#if defined(__x86_64__)
  std::uint16_t older = 0x037f;
#endif
  bool operator==(const FloatControl&) const = default;
};

inline FloatControl float_control() {
  FloatControl control;
#if defined(__x86_64__)
  control.mode = float_mode() & ~0x3fu;
  asm volatile("fnstcw %0" : "=m"(control.older));
#else
  control.mode = float_mode();
#endif
  return control;
}

inline void set_float_control(const FloatControl& control) {
  set_float_mode(control.mode);
#if defined(__x86_64__)
  asm volatile("fnclex\n\tfldcw %0" : : "m"(control.older));  // no pending exception may trap
#endif
}

/// Sets control bits for a scope if they differ (a few nanoseconds if not), then restores the
/// previous ones. Must stay on its thread.
class FloatControlScope {
 public:
  explicit FloatControlScope(const FloatControl& control) : before_(float_control()) {
    if (before_ != control) set_float_control(control);
  }
  ~FloatControlScope() {
    if (float_control() != before_) set_float_control(before_);
  }
  FloatControlScope(const FloatControlScope&) = delete;
  FloatControlScope& operator=(const FloatControlScope&) = delete;

 private:
  const FloatControl before_;
};

}  // namespace hmmjit
