// Four floats with the operations of the trace sampler: SSE2, or the compiler's own vectors. Not a
// matter of run-time dispatch, since more than four lanes would not be of use.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hmmjit::domain {

#if defined(__SSE2__)
struct FourFloats {
  __m128 v;
  static FourFloats all(float x) { return {_mm_set1_ps(x)}; }
  static FourFloats of(const float& a, const float& b, const float& c, const float& d) {
    return {_mm_unpacklo_ps(_mm_unpacklo_ps(_mm_load_ss(&a), _mm_load_ss(&c)),
                            _mm_unpacklo_ps(_mm_load_ss(&b), _mm_load_ss(&d)))};
  }
  /// `p`: aligned to 16 bytes.
  static FourFloats load(const float* p) { return {_mm_load_ps(p)}; }
  void store(float* p) const { _mm_store_ps(p, v); }
  friend FourFloats operator+(FourFloats a, FourFloats b) { return {_mm_add_ps(a.v, b.v)}; }
  friend FourFloats operator-(FourFloats a, FourFloats b) { return {_mm_sub_ps(a.v, b.v)}; }
  friend FourFloats operator*(FourFloats a, FourFloats b) { return {_mm_mul_ps(a.v, b.v)}; }
  /// Lane r from lane r - kLanes, zeros from below.
  template <int kLanes>
  FourFloats up() const {
    return {_mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 4 * kLanes))};
  }
  FourFloats last() const { return {_mm_shuffle_ps(v, v, _MM_SHUFFLE(3, 3, 3, 3))}; }
  FourFloats magnitude() const { return {_mm_andnot_ps(_mm_set1_ps(-0.0f), v)}; }
  /// Bit r: the sign of lane r.
  int signs() const { return _mm_movemask_ps(v); }
  /// Bit r: lane r of a is greater.
  friend int greater(FourFloats a, FourFloats b) { return _mm_movemask_ps(_mm_cmpgt_ps(a.v, b.v)); }
};

/// Sums of pairs of floats, kept as doubles.
class DoubleSums {
 public:
  /// Adds a[r] + b[r], as doubles, to sum r.
  void add(FourFloats a, FourFloats b) {
    low_ = _mm_add_pd(low_, _mm_add_pd(_mm_cvtps_pd(a.v), _mm_cvtps_pd(b.v)));
    high_ = _mm_add_pd(high_, _mm_add_pd(_mm_cvtps_pd(_mm_movehl_ps(a.v, a.v)),
                                         _mm_cvtps_pd(_mm_movehl_ps(b.v, b.v))));
  }
  double total() const {
    const __m128d sum = _mm_add_pd(low_, high_);
    return _mm_cvtsd_f64(sum) + _mm_cvtsd_f64(_mm_unpackhi_pd(sum, sum));
  }

 private:
  __m128d low_ = _mm_setzero_pd(), high_ = _mm_setzero_pd();
};
#else
struct FourFloats {
  using Floats = float __attribute__((vector_size(16)));
  using Words = std::int32_t __attribute__((vector_size(16)));
  Floats v;
  static FourFloats all(float x) { return {Floats{x, x, x, x}}; }
  static FourFloats of(float a, float b, float c, float d) { return {Floats{a, b, c, d}}; }
  static FourFloats load(const float* p) { return {*reinterpret_cast<const Floats*>(p)}; }
  void store(float* p) const { *reinterpret_cast<Floats*>(p) = v; }
  friend FourFloats operator+(FourFloats a, FourFloats b) { return {a.v + b.v}; }
  friend FourFloats operator-(FourFloats a, FourFloats b) { return {a.v - b.v}; }
  friend FourFloats operator*(FourFloats a, FourFloats b) { return {a.v * b.v}; }
  template <int kLanes>
  FourFloats up() const {
    if constexpr (kLanes == 1) return {Floats{0, v[0], v[1], v[2]}};
    static_assert(kLanes == 1 || kLanes == 2);
    return {Floats{0, 0, v[0], v[1]}};
  }
  FourFloats last() const { return all(v[3]); }
  FourFloats magnitude() const { return {Floats(Words(v) & 0x7fffffff)}; }
  int signs() const { return bits(Words(v) < 0); }
  friend int greater(FourFloats a, FourFloats b) { return bits(a.v > b.v); }

 private:
  static int bits(Words mask) {
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
  }
};

class DoubleSums {
 public:
  void add(FourFloats a, FourFloats b) {
    for (int r = 0; r < 4; ++r)
      sums_[r] += static_cast<double>(a.v[r]) + static_cast<double>(b.v[r]);
  }
  double total() const { return (sums_[0] + sums_[2]) + (sums_[1] + sums_[3]); }

 private:
  double sums_[4] = {};
};
#endif

}  // namespace hmmjit::domain
