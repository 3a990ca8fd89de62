// Four floats in the compiler's vector type: for the trace sampler, which has no use for more
// lanes, and for kernels without Highway (see float_groups-inl.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hmmjit::domain {

struct FourFloats {
  using Floats = float __attribute__((vector_size(16)));
  using Words = std::int32_t __attribute__((vector_size(16)));
  static constexpr int kGroups = 1, kMaskBytes = 1;
  Floats v;
  static FourFloats zero() { return {Floats{}}; }
  static FourFloats all(float x) { return {Floats{x, x, x, x}}; }
  static FourFloats of(float a, float b, float c, float d) { return {Floats{a, b, c, d}}; }
  /// `p` must be aligned to 16 bytes.
  static FourFloats load(const float* p) { return {*reinterpret_cast<const Floats*>(p)}; }
  static FourFloats same(const float* p) { return load(p); }
  static FourFloats same(const std::uint32_t* p) { return {*reinterpret_cast<const Floats*>(p)}; }
  static FourFloats gather(const float* const* p, std::size_t at) { return load(p[0] + at); }
  static FourFloats of_groups(const float* x) { return all(x[0]); }
  void store(float* p) const { *reinterpret_cast<Floats*>(p) = v; }
  friend FourFloats operator+(FourFloats a, FourFloats b) { return {a.v + b.v}; }
  friend FourFloats operator-(FourFloats a, FourFloats b) { return {a.v - b.v}; }
  friend FourFloats operator*(FourFloats a, FourFloats b) { return {a.v * b.v}; }
  friend FourFloats operator/(FourFloats a, FourFloats b) { return {a.v / b.v}; }
  friend FourFloats operator&(FourFloats a, FourFloats b) {
    return {Floats(Words(a.v) & Words(b.v))};
  }
  friend FourFloats operator|(FourFloats a, FourFloats b) {
    return {Floats(Words(a.v) | Words(b.v))};
  }
  friend FourFloats operator^(FourFloats a, FourFloats b) {
    return {Floats(Words(a.v) ^ Words(b.v))};
  }
  friend FourFloats max(FourFloats a, FourFloats b) { return {a.v > b.v ? a.v : b.v}; }
  friend FourFloats greater(FourFloats a, FourFloats b) { return {Floats(a.v > b.v)}; }
  friend bool any_greater(FourFloats a, FourFloats b) { return greater(a, b).signs() != 0; }
  FourFloats nonzero_words() const { return {Floats(Words(v) != 0)}; }
  FourFloats swap1() const { return {__builtin_shufflevector(v, v, 1, 0, 3, 2)}; }
  FourFloats swap2() const { return {__builtin_shufflevector(v, v, 2, 3, 0, 1)}; }
  FourFloats down() const { return {__builtin_shufflevector(v, Floats{}, 1, 2, 3, 4)}; }
  template <int kLane>
  FourFloats lane() const {
    return {__builtin_shufflevector(v, v, kLane, kLane, kLane, kLane)};
  }
  /// Lane r gets lane r - kBy; zeros enter from below.
  template <int kBy = 1>
  FourFloats up() const {
    return {__builtin_shufflevector(Floats{}, v, 4 - kBy, 5 - kBy, 6 - kBy, 7 - kBy)};
  }
  FourFloats magnitude() const { return {Floats(Words(v) & 0x7fffffff)}; }
  /// Bit r is the sign of lane r.
  int signs() const {
#if defined(__SSE2__)
    return _mm_movemask_ps(__m128(v));
#else
    const Words m = Words(v) < 0;
    return (m[0] & 1) | (m[1] & 2) | (m[2] & 4) | (m[3] & 8);
#endif
  }
  static constexpr int mask_bit(int) { return 0; }
  friend void store_greater(FourFloats a, FourFloats b, std::uint8_t* p) {
    *p = static_cast<std::uint8_t>(greater(a, b).signs());
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
