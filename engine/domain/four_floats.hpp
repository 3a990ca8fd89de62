// Four floats with the operations of the trace sampler. Not a matter of run-time dispatch, since
// more than four lanes would not be of use.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hmmjit::domain {

struct FourFloats {
  using Floats = float __attribute__((vector_size(16)));
  using Words = std::int32_t __attribute__((vector_size(16)));
  Floats v;
  static FourFloats all(float x) { return {Floats{x, x, x, x}}; }
  static FourFloats of(float a, float b, float c, float d) { return {Floats{a, b, c, d}}; }
  /// `p`: aligned to 16 bytes.
  static FourFloats load(const float* p) { return {*reinterpret_cast<const Floats*>(p)}; }
  void store(float* p) const { *reinterpret_cast<Floats*>(p) = v; }
  friend FourFloats operator+(FourFloats a, FourFloats b) { return {a.v + b.v}; }
  friend FourFloats operator-(FourFloats a, FourFloats b) { return {a.v - b.v}; }
  friend FourFloats operator*(FourFloats a, FourFloats b) { return {a.v * b.v}; }
  /// Lane r from lane r - kLanes, zeros from below.
  template <int kLanes>
  FourFloats up() const {
    return {__builtin_shufflevector(Floats{}, v, 4 - kLanes, 5 - kLanes, 6 - kLanes, 7 - kLanes)};
  }
  FourFloats last() const { return {__builtin_shufflevector(v, v, 3, 3, 3, 3)}; }
  FourFloats magnitude() const { return {Floats(Words(v) & 0x7fffffff)}; }
  /// Bit r: the sign of lane r.
  int signs() const { return sign_bits(Words(v)); }
  /// Bit r: lane r of a is greater.
  friend int greater(FourFloats a, FourFloats b) { return sign_bits(a.v > b.v); }

 private:
  static int sign_bits(Words words) {
#if defined(__SSE2__)
    return _mm_movemask_ps(__m128(words));
#else
    const Words m = words < 0;
    return (m[0] & 1) | (m[1] & 2) | (m[2] & 4) | (m[3] & 8);
#endif
  }
};

/// Sums of pairs of floats, kept as doubles.
class DoubleSums {
 public:
  /// Adds a[r] + b[r], as doubles, to sum r.
  void add(FourFloats a, FourFloats b) {
    sums_ += __builtin_convertvector(a.v, Doubles) + __builtin_convertvector(b.v, Doubles);
  }
  double total() const { return (sums_[0] + sums_[2]) + (sums_[1] + sums_[3]); }

 private:
  using Doubles = double __attribute__((vector_size(32)));
  Doubles sums_{};
};

}  // namespace hmmjit::domain
