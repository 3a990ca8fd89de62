// Vectors of floats in groups of four lanes, one group per sequence. Nothing crosses a group
// boundary, so at every width a sequence undergoes the same operations in the same order: that of
// HMMER, whose vectors have four lanes. Included once per Highway target.
#if defined(HMMJIT_DOMAIN_FLOAT_GROUPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_DOMAIN_FLOAT_GROUPS_INL_HPP
#undef HMMJIT_DOMAIN_FLOAT_GROUPS_INL_HPP
#else
#define HMMJIT_DOMAIN_FLOAT_GROUPS_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include "domain/four_floats.hpp"
#include "domain/kernels.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hmmjit::domain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// For processors without any instruction set that Highway supports (x86-64 before SSSE3).
template <int kCount>
using Groups = FourFloats;
#else
// One, two or four groups in one vector register.
template <int kCount>
struct Groups {
  static constexpr int kGroups = kCount;
  using D = hn::FixedTag<float, static_cast<std::size_t>(kCount* kLanes)>;
  using Words = hn::RebindToUnsigned<D>;
  using Group = hn::FixedTag<float, kLanes>;
  hn::Vec<D> v;

  static HWY_INLINE Groups zero() { return {hn::Zero(D())}; }
  static HWY_INLINE Groups load(const float* p) { return {hn::Load(D(), p)}; }
  // Loads the same four values into every group.
  static HWY_INLINE Groups same(const float* p) { return {hn::LoadDup128(D(), p)}; }
  static HWY_INLINE Groups same(const std::uint32_t* p) {
    return {hn::BitCast(D(), hn::LoadDup128(Words(), p))};
  }
  static HWY_INLINE Groups all(float x) { return {hn::Set(D(), x)}; }
  // Loads group g from p[g] + offset.
  static HWY_INLINE Groups gather(const float* const* p, std::size_t offset) {
    if constexpr (kCount == 1) {
      return {hn::Load(D(), p[0] + offset)};
    } else {
      using Half = Groups<kCount / 2>;
      return {hn::Combine(D(), Half::gather(p + kCount / 2, offset).v, Half::gather(p, offset).v)};
    }
  }
  // Copies x[g] to all lanes of group g; x is aligned to 16 bytes if there are four groups.
  static HWY_INLINE Groups of_groups(const float* x) {
    if constexpr (kCount == 1) {
      return all(x[0]);
    } else if constexpr (kCount == 2) {
      const hn::Half<D> half;
      return {hn::Combine(D(), hn::Set(half, x[1]), hn::Set(half, x[0]))};
    } else {
      alignas(64) static constexpr std::int32_t kGroupOf[] = {0, 0, 0, 0, 1, 1, 1, 1,
                                                              2, 2, 2, 2, 3, 3, 3, 3};
      return {hn::TableLookupLanes(hn::LoadDup128(D(), x), hn::SetTableIndices(D(), kGroupOf))};
    }
  }
  HWY_INLINE void store(float* p) const { hn::Store(v, D(), p); }
  // up: lane r of a group gets lane r-1, and lane 0 gets zero. down: the reverse.
  HWY_INLINE Groups up() const { return {hn::ShiftLeftLanes<1>(D(), v)}; }
  HWY_INLINE Groups down() const { return {hn::ShiftRightLanes<1>(D(), v)}; }
  HWY_INLINE Groups swap1() const { return {hn::Shuffle2301(v)}; }
  HWY_INLINE Groups swap2() const { return {hn::Shuffle1032(v)}; }
  friend HWY_INLINE Groups max(Groups a, Groups b) { return {hn::Max(a.v, b.v)}; }
  friend HWY_INLINE Groups operator+(Groups a, Groups b) { return {hn::Add(a.v, b.v)}; }
  friend HWY_INLINE Groups operator*(Groups a, Groups b) { return {hn::Mul(a.v, b.v)}; }
  friend HWY_INLINE Groups operator/(Groups a, Groups b) { return {hn::Div(a.v, b.v)}; }
  friend HWY_INLINE Groups operator&(Groups a, Groups b) { return {hn::And(a.v, b.v)}; }
  friend HWY_INLINE Groups operator|(Groups a, Groups b) { return {hn::Or(a.v, b.v)}; }
  friend HWY_INLINE Groups operator^(Groups a, Groups b) { return {hn::Xor(a.v, b.v)}; }
  friend HWY_INLINE bool any_greater(Groups a, Groups b) {
    return !hn::AllFalse(D(), hn::Gt(a.v, b.v));
  }
  // All ones where a > b.
  friend HWY_INLINE Groups greater(Groups a, Groups b) {
    return {hn::VecFromMask(D(), hn::Gt(a.v, b.v))};
  }
  // Copies one lane of each group to all of its lanes.
  template <int kLane>
  HWY_INLINE Groups lane() const {
    return {hn::Broadcast<kLane>(v)};
  }
  // a > b, one bit per lane; the bits of group g begin at bit mask_bit(g).
  static constexpr int kMaskBytes = kCount == 4 ? 2 : 1;
  static constexpr int mask_bit(int g) { return g * kLanes; }
  friend HWY_INLINE void store_greater(Groups a, Groups b, std::uint8_t* p) {
    hn::StoreMaskBits(D(), hn::Gt(a.v, b.v), p);
  }
  // All ones where any bit of the word is set.
  HWY_INLINE Groups nonzero_words() const {
    const auto words = hn::BitCast(Words(), v);
    return {hn::BitCast(D(), hn::VecFromMask(Words(), hn::Ne(words, hn::Zero(Words()))))};
  }
};
#endif

// Two vectors that go through the recurrences together. Forward and Backward are chains of
// dependent additions and products over the stripes; a second chain fills the latency.
template <class V>
struct Pair {
  static constexpr int kGroups = 2 * V::kGroups;
  static constexpr int kHalf = V::kGroups * kLanes;
  V a, b;
  static HWY_INLINE Pair zero() { return {V::zero(), V::zero()}; }
  static HWY_INLINE Pair load(const float* p) { return {V::load(p), V::load(p + kHalf)}; }
  template <typename T>
  static HWY_INLINE Pair same(const T* p) {
    const V v = V::same(p);
    return {v, v};
  }
  static HWY_INLINE Pair all(float x) { return {V::all(x), V::all(x)}; }
  static HWY_INLINE Pair gather(const float* const* p, std::size_t offset) {
    return {V::gather(p, offset), V::gather(p + V::kGroups, offset)};
  }
  static HWY_INLINE Pair of_groups(const float* x) {
    return {V::of_groups(x), V::of_groups(x + V::kGroups)};
  }
  HWY_INLINE void store(float* p) const {
    a.store(p);
    b.store(p + kHalf);
  }
  HWY_INLINE Pair up() const { return {a.up(), b.up()}; }
  HWY_INLINE Pair down() const { return {a.down(), b.down()}; }
  HWY_INLINE Pair swap1() const { return {a.swap1(), b.swap1()}; }
  HWY_INLINE Pair swap2() const { return {a.swap2(), b.swap2()}; }
  friend HWY_INLINE Pair max(Pair x, Pair y) { return {max(x.a, y.a), max(x.b, y.b)}; }
  friend HWY_INLINE Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
  friend HWY_INLINE Pair operator*(Pair x, Pair y) { return {x.a * y.a, x.b * y.b}; }
  friend HWY_INLINE Pair operator/(Pair x, Pair y) { return {x.a / y.a, x.b / y.b}; }
  friend HWY_INLINE Pair operator&(Pair x, Pair y) { return {x.a & y.a, x.b & y.b}; }
  friend HWY_INLINE Pair operator|(Pair x, Pair y) { return {x.a | y.a, x.b | y.b}; }
  friend HWY_INLINE Pair operator^(Pair x, Pair y) { return {x.a ^ y.a, x.b ^ y.b}; }
  friend HWY_INLINE bool any_greater(Pair x, Pair y) {
    return (static_cast<int>(any_greater(x.a, y.a)) | static_cast<int>(any_greater(x.b, y.b))) != 0;
  }
  friend HWY_INLINE Pair greater(Pair x, Pair y) { return {greater(x.a, y.a), greater(x.b, y.b)}; }
  template <int kLane>
  HWY_INLINE Pair lane() const {
    return {a.template lane<kLane>(), b.template lane<kLane>()};
  }
  static constexpr int kMaskBytes = 2 * V::kMaskBytes;
  static constexpr int mask_bit(int g) {
    return g < V::kGroups ? V::mask_bit(g) : 8 * V::kMaskBytes + V::mask_bit(g - V::kGroups);
  }
  friend HWY_INLINE void store_greater(Pair x, Pair y, std::uint8_t* p) {
    store_greater(x.a, y.a, p);
    store_greater(x.b, y.b, p + V::kMaskBytes);
  }
  HWY_INLINE Pair nonzero_words() const { return {a.nonzero_words(), b.nonzero_words()}; }
};

}  // namespace
}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
