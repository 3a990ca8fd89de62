// SSV and MSV filters in bytes, one instruction set per pass of foreach_target.
//
// Both use the striped layout of Farrar (2007): node k sits in stripe (k-1) mod Q, lane
// (k-1) div Q, so that M(i-1,k-1) is the previous stripe and only the last stripe of a row has to
// move by a lane. Score definitions: Eddy (2011), doi:10.1371/journal.pcbi.1002195.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/byte_kernels.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include <array>
#include <utility>

#include "cpu/kernels.hpp"
#include "cpu/lanes-inl.h"
#include "cpu/select_kernels.hpp"
#include "hwy/highway.h"

#if HMMJIT_CPU_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- SSV
//
// S(i,k) = max(-128, S(i-1,k-1) - cost): a saturating signed subtraction does all of it. A row
// needs no cell of its own, so rows are updated in place from the last stripe to the first, in
// registers, and the only memory traffic is the cost vectors.
//
// Two rows are taken together. With 512-bit vectors, x86 cores run saturating additions and
// maxima on one port, plain additions on two; so there the maximum is taken once for two cells of
// a diagonal: S(i+1,k+1) exceeds S(i,k) by at most g = max(0, -cost), and
// max(S(i,k), S(i+1,k+1)) = S(i,k) + g with a table of g. That addition may wrap only after a
// cell that already means overflow (a step gains at most the bias), and then the exact maximum
// does not matter.

template <class D, std::size_t kVectors>
class SsvRows {
 public:
  using V = hn::Vec<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());
  static constexpr std::size_t kRow = kVectors * kLanes;  // bytes of costs
  // A 128-bit block shifts the begin score into node 1 at no cost. Wider vectors rotate: their
  // last slot is padding (cost 127), so what comes around is the begin score as well.
  static constexpr bool kShifts = kLanes == 16;
  static constexpr bool kGains = kLanes == 64;
  static constexpr std::size_t kStride = kGains ? 2 * kRow : kRow;

  HWY_INLINE explicit SsvRows(D d) {
    for (std::size_t j = 0; j < kVectors; ++j) s_[j] = hn::Set(d, kBegin);
    best_[0] = best_[1] = hn::Set(d, kBegin);
  }
  /// From the last stripe of a row to what the first stripe of the next one needs.
  static HWY_INLINE V Next(D d, V last) {
    if constexpr (kShifts) {
      return hn::CombineShiftRightBytes<15>(d, last, hn::Set(d, kBegin));
    } else {
      return RotateLanes(d, last);
    }
  }
  HWY_INLINE V Last() const { return s_[kVectors - 1]; }

  /// The last stripe of the first row of a pair; `in` as given to Pair.
  HWY_INLINE V LastOfFirst(D d, const std::int8_t* first, V in) const {
    const V above = kVectors == 1 ? in : s_[kVectors < 2 ? 0 : kVectors - 2];
    return hn::SaturatedSub(above, hn::Load(d, first + (kVectors - 1) * kLanes));
  }
  /// Two rows with the table rows of their residues; `in1`, `in2` enter the first stripe.
  HWY_INLINE void Pair(D d, const std::int8_t* first, const std::int8_t* second, V in1, V in2) {
    PairCells(d, first, second, in1, in2, std::make_index_sequence<kVectors>());
  }
  HWY_INLINE void Single(D d, const std::int8_t* costs, V in) {
    SingleCells(d, costs, in, std::make_index_sequence<kVectors>());
  }
  /// For cells no later pair covers: what leaves the last stripe between the rows of a pair.
  HWY_INLINE void Cover(V cells) { best_[0] = hn::Max(best_[0], cells); }
  HWY_INLINE int Best(D d) const { return LargestLane(d, hn::Max(best_[0], best_[1])); }

  static constexpr std::int8_t kBegin = -128;

 private:
  template <std::size_t j>
  HWY_INLINE void PairCell(D d, const std::int8_t* first, const std::int8_t* second, V in1, V in2) {
    V upper;  // first row, stripe j - 1
    if constexpr (j == 0) {
      upper = in2;
    } else if constexpr (j == 1) {
      upper = hn::SaturatedSub(in1, hn::Load(d, first));
    } else {
      upper = hn::SaturatedSub(s_[j - 2], hn::Load(d, first + (j - 1) * kLanes));
    }
    s_[j] = hn::SaturatedSub(upper, hn::Load(d, second + j * kLanes));
    if constexpr (kGains) {
      const V gains = hn::Load(d, second + kRow + j * kLanes);
      best_[0] = hn::Max(best_[0], hn::Add(upper, gains));
    } else {
      // The begin score or the last stripe, which Cover sees, enters the first stripe.
      if constexpr (j != 0) best_[0] = hn::Max(best_[0], upper);
      best_[1] = hn::Max(best_[1], s_[j]);
    }
  }
  template <std::size_t... j>
  HWY_INLINE void PairCells(D d, const std::int8_t* first, const std::int8_t* second, V in1, V in2,
                            std::index_sequence<j...>) {
    (PairCell<kVectors - 1 - j>(d, first, second, in1, in2), ...);
  }
  template <std::size_t j>
  HWY_INLINE void SingleCell(D d, const std::int8_t* costs, V in) {
    s_[j] = hn::SaturatedSub(j == 0 ? in : s_[j == 0 ? 0 : j - 1], hn::Load(d, costs + j * kLanes));
    best_[j & 1] = hn::Max(best_[j & 1], s_[j]);
  }
  template <std::size_t... j>
  HWY_INLINE void SingleCells(D d, const std::int8_t* costs, V in, std::index_sequence<j...>) {
    (SingleCell<kVectors - 1 - j>(d, costs, in), ...);
  }

  V s_[kVectors];
  V best_[2];  // one alone would be a dependency chain as long as the row
};

template <class D, std::size_t kVectors>
int SsvSingleKernel(const std::int8_t* HWY_RESTRICT table, const Residue* HWY_RESTRICT residues,
                    std::size_t length) {
  const D d;
  SsvRows<D, kVectors> rows(d);
  const auto costs = [&](std::size_t i)
                         HWY_ATTR { return table + (residues[i] % kSsvCodes) * rows.kStride; };
  std::size_t i = 0;
  for (; i + 2 <= length; i += 2) {
    const auto in1 = rows.Next(d, rows.Last());
    const auto last = rows.LastOfFirst(d, costs(i), in1);
    if constexpr (rows.kShifts || !rows.kGains) rows.Cover(last);
    rows.Pair(d, costs(i), costs(i + 1), in1, rows.Next(d, last));
  }
  if (i < length) rows.Single(d, costs(i), rows.Next(d, rows.Last()));
  return rows.Best(d);
}

// A tile of a longer model: its own stripes, and one byte per row from and to its neighbours.
template <class D, std::size_t kVectors>
int SsvTileKernel(const std::int8_t* HWY_RESTRICT table, const Residue* HWY_RESTRICT residues,
                  std::size_t length, const std::int8_t* HWY_RESTRICT in,
                  std::int8_t* HWY_RESTRICT out) {
  const D d;
  const hn::Simd<std::int8_t, 4, 0> d4;
  const auto first_lane = hn::FirstN(d, 1);
  SsvRows<D, kVectors> rows(d);
  const auto costs = [&](std::size_t i)
                         HWY_ATTR { return table + (residues[i] % kSsvCodes) * rows.kStride; };
  const auto enter = [&](auto rotated, std::int8_t incoming) HWY_ATTR {
    return hn::IfThenElse(first_lane, hn::Set(d, incoming), rotated);
  };
  // Lane 0 of a rotated last stripe is the tile's last slot; four bytes are stored because that
  // is one instruction, the next row overwrites three of them.
  const auto leave = [&](auto rotated, std::size_t i)
                         HWY_ATTR { hn::StoreU(FourLanes(d, rotated), d4, out + i); };
  auto rotated = rows.Last();
  std::int8_t incoming = rows.kBegin;
  std::size_t i = 0;
  for (; i + 2 <= length; i += 2) {
    const auto in1 = enter(rotated, incoming);
    const auto last = rows.LastOfFirst(d, costs(i), in1);
    rows.Cover(last);
    rotated = RotateLanes(d, last);
    leave(rotated, i);
    rows.Pair(d, costs(i), costs(i + 1), in1, enter(rotated, in[i]));
    rotated = RotateLanes(d, rows.Last());
    leave(rotated, i + 1);
    incoming = in[i + 1];
  }
  if (i < length) {
    rows.Single(d, costs(i), enter(rotated, incoming));
    leave(RotateLanes(d, rows.Last()), i);
  }
  return rows.Best(d);
}

template <class D, std::size_t... j>
constexpr auto SingleKernels(std::index_sequence<j...>) {
  return std::array<SsvSingle, sizeof...(j)>{&SsvSingleKernel<D, j + 1>...};
}
template <class D, std::size_t... j>
constexpr auto TileKernels(std::index_sequence<j...>) {
  return std::array<SsvTile, sizeof...(j)>{&SsvTileKernel<D, j + 1>...};
}

// ---- MSV
//
// Only targets that SSV cannot decide come here, so the row lives in memory and any model length
// takes the same loop. The row maximum is needed only where it changes the begin score or
// overflows: a comparison per row, no reduction.

template <class D>
int Msv(const std::uint8_t* HWY_RESTRICT table, int stripes, const MsvParameters& parameters,
        std::span<const Residue> residues, std::uint8_t* HWY_RESTRICT row) {
  const D d;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  const std::size_t row_bytes = static_cast<std::size_t>(stripes) * kLanes;
  const auto first_lane = hn::FirstN(d, 1);
  const auto zero = hn::Zero(d);
  const auto bias = hn::Set(d, parameters.bias);
  const auto subtract = [](int a, int b) { return a > b ? a - b : 0; };

  int J = 0;
  // E above this either overflows or raises B.
  const auto event_threshold = [&](int j) {
    const int begin = (parameters.base > j ? parameters.base : j) + parameters.tec;
    const int overflow = 254 - parameters.bias;
    return begin < overflow ? begin : overflow;
  };
  const auto begin_score = [&](int j) {
    return static_cast<std::uint8_t>(
        subtract(parameters.base > j ? parameters.base : j, parameters.tjb_tbm));
  };
  // -1 when every E >= 0 overflows (bias 255): then no threshold byte exists.
  int threshold = event_threshold(J);
  auto begin = hn::Set(d, begin_score(J));
  auto largest = zero;
  for (std::size_t offset = 0; offset < row_bytes; offset += kLanes) {
    hn::Store(zero, d, row + offset);
  }
  for (const Residue residue : residues) {
    const std::uint8_t* costs = table + residue * row_bytes;
    auto previous =
        hn::IfThenZeroElse(first_lane, RotateLanes(d, hn::Load(d, row + row_bytes - kLanes)));
    for (std::size_t offset = 0; offset < row_bytes; offset += kLanes) {
      const auto with_bias = hn::SaturatedAdd(hn::Max(previous, begin), bias);
      const auto cell = hn::SaturatedSub(with_bias, hn::Load(d, costs + offset));
      largest = hn::Max(largest, cell);
      previous = hn::Load(d, row + offset);
      hn::Store(cell, d, row + offset);
    }
    if (threshold >= 0) {
      const auto bound = hn::Set(d, static_cast<std::uint8_t>(threshold));
      if (HWY_LIKELY(hn::AllTrue(d, hn::Eq(hn::Max(largest, bound), bound)))) continue;
    }
    const int E = LargestLane(d, largest);
    if (E + parameters.bias >= 255) return kMsvOverflow;
    J = subtract(E, parameters.tec);
    threshold = event_threshold(J);
    begin = hn::Set(d, begin_score(J));
  }
  // Rows below the threshold never changed B, but they count for J.
  return subtract(LargestLane(d, largest), parameters.tec);
}

#if HWY_TARGET == HWY_AVX3
// 32 registers; the costs and gains of the 20 common residues stay near the L1 cache.
constexpr std::size_t kWideVectors = 20;
constexpr std::size_t kNarrowVectors = 8;
using Bytes64 = hn::Simd<std::int8_t, 64, 0>;
#else
// 16 registers: state, maxima, and what the rows in flight need.
constexpr std::size_t kWideVectors = 12;
constexpr std::size_t kNarrowVectors = 8;
#endif
using Bytes16 = hn::Simd<std::int8_t, 16, 0>;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using Bytes32 = hn::Simd<std::int8_t, 32, 0>;
#endif

template <class D, std::size_t kSingle, std::size_t kTile>
SsvShape Shape() {
  static constexpr auto kSingles = SingleKernels<D>(std::make_index_sequence<kSingle>());
  static constexpr auto kTiles = TileKernels<D>(std::make_index_sequence<kTile>());
  return {.lanes = static_cast<int>(hn::MaxLanes(D())),
          .max_vectors = static_cast<int>(kSingle),
          .gains = SsvRows<D, 1>::kGains,
          .single = kSingles.data(),
          .tile = kTile == 0 ? nullptr : kTiles.data()};
}
template <class D>
MsvShape MsvShapeOf() {
  const hn::Repartition<std::uint8_t, D> d8;
  return {static_cast<int>(hn::MaxLanes(d8)), &Msv<hn::Repartition<std::uint8_t, D>>};
}

const ByteKernels& BytesOfTarget() {
  static const ByteKernels kernels = {
#if HWY_TARGET == HWY_AVX3
    {Shape<Bytes64, kWideVectors, kWideVectors>(), Shape<Bytes32, kNarrowVectors, 0>(),
     Shape<Bytes16, kNarrowVectors, 0>()},
    {MsvShapeOf<Bytes64>(), MsvShapeOf<Bytes32>(), MsvShapeOf<Bytes16>()}
#elif HWY_TARGET == HWY_AVX2
    {Shape<Bytes32, kWideVectors, kWideVectors>(), Shape<Bytes16, kNarrowVectors, 0>(), {}},
    {MsvShapeOf<Bytes32>(), MsvShapeOf<Bytes16>(), {}}
#else
    {Shape<Bytes16, kWideVectors, kWideVectors>(), {}, {}},
    {MsvShapeOf<Bytes16>(), {}, {}}
#endif
  };
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace hmmjit::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace hmmjit::cpu {

const ByteKernels* byte_kernels(std::int64_t target) {
  HMMJIT_SELECT_KERNELS(target, BytesOfTarget)
}

}  // namespace hmmjit::cpu
#endif
