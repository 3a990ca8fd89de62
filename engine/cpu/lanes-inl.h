// Lane movement shared by the byte and word kernels. Included once per target.
#if defined(HMMJIT_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_CPU_LANES_INL_H_
#undef HMMJIT_CPU_LANES_INL_H_
#else
#define HMMJIT_CPU_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

// The targets of the filters; all others fall back to engine/reference.
#undef HMMJIT_CPU_TARGET
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || \
    HWY_TARGET == HWY_NEON
#define HMMJIT_CPU_TARGET 1
#else
#define HMMJIT_CPU_TARGET 0
#endif

#if HMMJIT_CPU_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Lane r of the result is lane r-1 of v; lane 0 is the last lane of v. With k = r*Q + q + 1, this
/// turns the last stripe of a row into the predecessors of the next row's first stripe.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RotateLanes(D d, V v) {
  using T = hn::TFromD<D>;
  constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(T);
  constexpr int kBlockShift = 16 - static_cast<int>(sizeof(T));
  const hn::Repartition<std::uint8_t, D> d8;
  const auto bytes = hn::BitCast(d8, v);
  if constexpr (kBytes == 16) {
    return hn::BitCast(d, hn::CombineShiftRightBytes<kBlockShift>(d8, bytes, bytes));
  } else if constexpr (kBytes == 32) {
    const auto swapped = hn::ConcatLowerUpper(d8, bytes, bytes);
    return hn::BitCast(d, hn::CombineShiftRightBytes<kBlockShift>(d8, bytes, swapped));
  } else {
    // Moves every 128-bit block up by one, by one instruction (a permutation with constant
    // indices).
    static_assert(kBytes == 64);
    const hn::Repartition<std::uint64_t, D> d64;
    alignas(64) static constexpr std::uint64_t kPreviousBlock[8] = {6, 7, 0, 1, 2, 3, 4, 5};
    const auto rotated =
        hn::TableLookupLanes(hn::BitCast(d64, v), hn::SetTableIndices(d64, kPreviousBlock));
    return hn::BitCast(
        d, hn::CombineShiftRightBytes<kBlockShift>(d8, bytes, hn::BitCast(d8, rotated)));
  }
}

/// The lowest four bytes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE auto FourLanes(D, V v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FourLanes(half, hn::LowerHalf(half, v));
  }
}

/// Largest lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::TFromD<D> LargestLane(D d, V v) {
  using T = hn::TFromD<D>;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  alignas(64) T values[kLanes];
  hn::Store(v, d, values);
  // Folds to one 128-bit block, then rotates that onto itself.
  constexpr std::size_t kBlock = 16 / sizeof(T);
  const hn::Simd<T, kBlock, 0> block;
  const hn::Repartition<std::uint8_t, decltype(block)> d8;
  auto largest = hn::Load(block, values);
  for (std::size_t lane = kBlock; lane < kLanes; lane += kBlock) {
    largest = hn::Max(largest, hn::Load(block, values + lane));
  }
  const auto fold = [&]<int kDistance>() HWY_ATTR {
    const auto bytes = hn::BitCast(d8, largest);
    largest = hn::Max(largest,
                      hn::BitCast(block, hn::CombineShiftRightBytes<kDistance>(d8, bytes, bytes)));
  };
  fold.template operator()<8>();
  fold.template operator()<4>();
  fold.template operator()<2>();
  if constexpr (sizeof(T) == 1) fold.template operator()<1>();
  return hn::GetLane(largest);
}

}  // namespace HWY_NAMESPACE
}  // namespace hmmjit::cpu
HWY_AFTER_NAMESPACE();
#endif  // HMMJIT_CPU_TARGET

#endif
