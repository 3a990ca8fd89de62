// SSV and MSV filters in bytes; each pass of foreach_target is an instruction set.
//
// Both use the striped layout of Farrar (2007): node k is in stripe (k-1) mod Q, lane (k-1) div Q,
// so M(i-1,k-1) is in the previous stripe; only the last stripe of a row moves by a lane. Score
// definitions: Eddy (2011), doi:10.1371/journal.pcbi.1002195.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/byte_kernels.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "cpu/kernels.hpp"
#include "cpu/lanes-inl.h"
#include "hwy/highway.h"

#if HMMJIT_CPU_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- SSV
//
// S(i,k) = max(-128, S(i-1,k-1) - cost) is one saturating signed subtraction. Registers hold the
// row, updated in place from last stripe to first, so only cost vectors are read from memory.
//
// The loop takes pairs of rows, after a single first row if their number is odd: with code after
// the loop, compilers would keep the row in memory. It reduces two cells of a diagonal to their
// maximum, then updates a running maximum. Several running maxima avoid a dependency chain as long
// as the row, with up to two clocks per step.
//
// Intel's cores execute saturating additions and maxima of 512 bits on one port, but plain
// additions on two. `kGains` serves them: S(i+1,k+1) exceeds S(i,k) by at most g = max(0, -cost),
// so max(S(i,k), S(i+1,k+1)) = S(i,k) + g with a table of g. The addition wraps only after a cell
// that already means overflow (a step gains at most the bias); the exact maximum is then
// irrelevant. AMD's cores have as many ports for maxima as for additions, but load at most two
// vectors per clock: a third load per two cells would be the bottleneck.

template <class D, std::size_t kVectors, bool kGains, std::size_t kMaxima>
class SsvRows {
 public:
  using V = hn::Vec<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());
  // A 128-bit block shifts the begin score into node 1 at no cost. Wider vectors rotate the begin
  // score in from their last slot, which is padding (cost 127).
  static constexpr bool kShifts = kLanes == 16;
  static constexpr std::size_t kStride = ssv_row_bytes(kLanes, kVectors, kGains);

  HWY_INLINE SsvRows() { Begin(); }
  /// Resets to the state before the first row.
  HWY_INLINE void Begin() {
    for (std::size_t j = 0; j < kVectors; ++j) s_[j] = hn::Set(D(), kBegin);
    BeginBlock();
  }
  HWY_INLINE void BeginBlock() {
    for (std::size_t j = 0; j < kMaxima; ++j) best_[j] = hn::Set(D(), kBegin);
  }
  /// Converts the last stripe of a row to the input of the next row's first stripe.
  static HWY_INLINE V Next(D d, V last) {
    if constexpr (kShifts) {
      return hn::CombineShiftRightBytes<15>(d, last, hn::Set(d, kBegin));
    } else {
      return RotateLanes(d, last);
    }
  }
  HWY_INLINE V Last() const { return s_[kVectors - 1]; }
  static HWY_INLINE const std::int8_t* Costs(const std::int8_t* table, Residue residue) {
    return table + (residue % kSsvCodes) * kStride;
  }

  /// Computes the last stripe of the first row of a pair; `in` as in Pair.
  HWY_INLINE V LastOfFirst(D d, const std::int8_t* first, V in) const {
    const V above = kVectors == 1 ? in : s_[kVectors < 2 ? 0 : kVectors - 2];
    return hn::SaturatedSub(above, hn::Load(d, first + (kVectors - 1) * kLanes));
  }
  /// Computes two rows from their residues' table rows; `in1`, `in2` enter the first stripe.
  HWY_INLINE void Pair(D d, const std::int8_t* first, const std::int8_t* second, V in1, V in2) {
    PairCells(d, first, second, in1, in2, std::make_index_sequence<kVectors>());
  }
  HWY_INLINE void Single(D d, const std::int8_t* costs, V in) {
    SingleCells(d, costs, in, std::make_index_sequence<kVectors>());
  }
  /// Computes two rows (WholeSingle: one row) of a model that is not tiled.
  HWY_INLINE void WholePair(D d, const std::int8_t* table, const Residue* residues) {
    const std::int8_t* const first = Costs(table, residues[0]);
    const V in = Next(d, Last());
    const V last = LastOfFirst(d, first, in);
    if constexpr (kShifts || !kGains) Cover(last);
    Pair(d, first, Costs(table, residues[1]), in, Next(d, last));
  }
  HWY_INLINE void WholeSingle(D d, const std::int8_t* table, Residue residue) {
    Single(d, Costs(table, residue), Next(d, Last()));
  }
  /// Includes cells that no later pair includes: the last stripe's output between the rows of a
  /// pair.
  HWY_INLINE void Cover(V cells) { Keep<kVectors>(cells); }
  HWY_INLINE int Best(D d) const {
    V best = best_[0];
    for (std::size_t j = 1; j < kMaxima; ++j) best = hn::Max(best, best_[j]);
    return LargestLane(d, best);
  }

  static constexpr std::int8_t kBegin = -128;

 private:
  static constexpr std::size_t kRow = kVectors * kLanes;  // bytes of costs

  template <std::size_t j>
  HWY_INLINE void Keep(V cells) {
    best_[j % kMaxima] = hn::Max(best_[j % kMaxima], cells);
  }
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
      Keep<j>(hn::Add(upper, hn::Load(d, second + kRow + j * kLanes)));
    } else if constexpr (j == 0) {
      // The begin score or the last stripe enters the first stripe; Cover includes the latter.
      Keep<j>(s_[j]);
    } else {
      Keep<j>(hn::Max(upper, s_[j]));
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
    Keep<j>(s_[j]);
  }
  template <std::size_t... j>
  HWY_INLINE void SingleCells(D d, const std::int8_t* costs, V in, std::index_sequence<j...>) {
    (SingleCell<kVectors - 1 - j>(d, costs, in), ...);
  }

  V s_[kVectors];
  V best_[kMaxima];
};

// Running maxima for a single target: four if registers suffice.
template <class D, bool kGains>
inline constexpr std::size_t kMaximaAlone = hn::MaxLanes(D()) == 64 && !kGains ? 4 : 2;

template <class D, std::size_t kVectors, bool kGains>
int SsvSingleKernel(const std::int8_t* HWY_RESTRICT table, const Residue* HWY_RESTRICT residues,
                    std::size_t length) {
  const D d;
  SsvRows<D, kVectors, kGains, kMaximaAlone<D, kGains>> rows;
  std::size_t i = length % 2;
  if (i != 0) rows.WholeSingle(d, table, residues[0]);
  for (; i < length; i += 2) rows.WholePair(d, table, residues + i);
  return rows.Best(d);
}

// The dependency of a row's first stripe on the last stripe before bounds short rows. Interleaving
// several targets hides it. The next target replaces a finished one.
template <class D, std::size_t kVectors, bool kGains, std::size_t kSlots>
class SsvSlots {
 public:
  HWY_INLINE SsvSlots(const std::int8_t* table, std::span<const std::span<const Residue>> targets,
                      std::size_t block, int* best)
      : table_(table), targets_(targets), block_(block), next_best_(best) {
    for (std::size_t n = 0; n < kSlots; ++n) left_[n] = kFree;
  }

  HWY_INLINE void Run() {
    constexpr auto all = std::make_index_sequence<kSlots>();
    Fill(all);
    while (busy_ == kSlots) {
      const std::size_t rows = Shortest();
      for (std::size_t i = 0; i < rows; i += 2) Pairs(i, all);
      Advance(rows, all);
    }
    Drain(all);
  }

 private:
  template <std::size_t... n>
  HWY_INLINE void Fill(std::index_sequence<n...>) {
    (Take<n>(), ...);
  }
  template <std::size_t... n>
  HWY_INLINE void Pairs(std::size_t i, std::index_sequence<n...>) {
    (rows_[n].WholePair(D(), table_, residues_[n] + i), ...);
  }
  template <std::size_t... n>
  HWY_INLINE void Advance(std::size_t rows, std::index_sequence<n...>) {
    (AdvanceSlot<n>(rows), ...);
  }
  template <std::size_t... n>
  HWY_INLINE void Drain(std::index_sequence<n...>) {
    (DrainSlot<n>(), ...);
  }
  HWY_INLINE std::size_t Shortest() const {
    std::size_t shortest = left_[0];
    for (std::size_t n = 1; n < kSlots; ++n) shortest = std::min(shortest, left_[n]);
    return shortest;
  }
  template <std::size_t n>
  HWY_INLINE void Take() {
    if (next_ == targets_.size()) return;
    const std::span<const Residue> target = targets_[next_++];
    residues_[n] = target.data();
    rest_[n] = target.size();
    best_[n] = next_best_;
    next_best_ += ssv_blocks(target.size(), block_);
    rows_[n].Begin();
    if (rest_[n] % 2 != 0) {
      rows_[n].WholeSingle(D(), table_, *residues_[n]++);
      --rest_[n];
    }
    TakeBlock<n>();
    ++busy_;
  }
  template <std::size_t n>
  HWY_INLINE void TakeBlock() {
    left_[n] = std::min(rest_[n], block_);
    rest_[n] -= left_[n];
  }
  template <std::size_t n>
  HWY_INLINE void AdvanceSlot(std::size_t rows) {
    residues_[n] += rows;
    left_[n] -= rows;
    if (left_[n] == 0) Finish<n>();
  }
  template <std::size_t n>
  HWY_INLINE void Finish() {
    *best_[n]++ = rows_[n].Best(D());
    if (rest_[n] != 0) {
      rows_[n].BeginBlock();
      return TakeBlock<n>();
    }
    left_[n] = kFree;
    --busy_;
    Take<n>();
  }
  template <std::size_t n>
  HWY_INLINE void DrainSlot() {
    while (left_[n] != kFree) {
      for (; left_[n] != 0; left_[n] -= 2, residues_[n] += 2)
        rows_[n].WholePair(D(), table_, residues_[n]);
      Finish<n>();
    }
  }

  static constexpr std::size_t kFree = ~std::size_t{0};

  const std::int8_t* table_;
  std::span<const std::span<const Residue>> targets_;
  std::size_t block_;
  int* next_best_;
  std::size_t next_ = 0, busy_ = 0;
  SsvRows<D, kVectors, kGains, 2> rows_[kSlots];
  const Residue* residues_[kSlots] = {};
  // Rows left in the block, and rows after it; both even.
  std::size_t left_[kSlots], rest_[kSlots] = {};
  int* best_[kSlots] = {};
};

template <class D, std::size_t kVectors, bool kGains, std::size_t kSlots>
void SsvGroupKernel(const std::int8_t* table, std::span<const std::span<const Residue>> targets,
                    std::size_t block, int* best) {
  SsvSlots<D, kVectors, kGains, kSlots> slots(table, targets, block, best);
  slots.Run();
}

// One tile of a longer model: its stripes, and one byte per row from and to the neighbouring tiles.
template <class D, std::size_t kVectors, bool kGains>
int SsvTileKernel(const std::int8_t* HWY_RESTRICT table, const Residue* HWY_RESTRICT residues,
                  std::size_t length, const std::int8_t* HWY_RESTRICT in,
                  std::int8_t* HWY_RESTRICT out) {
  const D d;
  const hn::Simd<std::int8_t, 4, 0> d4;
  const auto first_lane = hn::FirstN(d, 1);
  SsvRows<D, kVectors, kGains, kMaximaAlone<D, kGains>> rows;
  const auto costs = [&](std::size_t i) HWY_ATTR { return rows.Costs(table, residues[i]); };
  const auto enter = [&](auto rotated, std::int8_t incoming) HWY_ATTR {
    return hn::IfThenElse(first_lane, hn::Set(d, incoming), rotated);
  };
  // Lane 0 of the rotated last stripe is the tile's last slot. Storing four bytes takes one
  // instruction; the following rows overwrite three of them.
  const auto leave = [&](auto rotated, std::size_t i)
                         HWY_ATTR { hn::StoreU(FourLanes(d, rotated), d4, out + i); };
  auto rotated = rows.Last();
  std::int8_t incoming = rows.kBegin;
  std::size_t i = length % 2;
  if (i != 0) {
    rows.Single(d, costs(0), enter(rotated, incoming));
    rotated = RotateLanes(d, rows.Last());
    leave(rotated, 0);
    incoming = in[0];
  }
  for (; i < length; i += 2) {
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
  return rows.Best(d);
}

template <class D, bool kGains, std::size_t... j>
constexpr auto SingleKernels(std::index_sequence<j...>) {
  return std::array<SsvSingle, sizeof...(j)>{&SsvSingleKernel<D, j + 1, kGains>...};
}
template <class D, bool kGains, std::size_t... j>
constexpr auto TileKernels(std::index_sequence<j...>) {
  return std::array<SsvTile, sizeof...(j)>{&SsvTileKernel<D, j + 1, kGains>...};
}
// Interleaves as many targets as fit into registers with these vectors per row.
template <class D, std::size_t kVectors, bool kGains>
constexpr SsvGroup GroupKernel() {
  constexpr bool kMany = hn::MaxLanes(D()) == 64 && !kGains;
  constexpr std::size_t kSlots = !kMany ? (kVectors <= 3 ? 2 : 1)
                                        : (kVectors <= 3   ? 4
                                           : kVectors <= 5 ? 3
                                           : kVectors <= 8 ? 2
                                                           : 1);
  return &SsvGroupKernel<D, kVectors, kGains, kSlots>;
}
template <class D, bool kGains, std::size_t... j>
constexpr auto GroupKernels(std::index_sequence<j...>) {
  return std::array<SsvGroup, sizeof...(j)>{GroupKernel<D, j + 1, kGains>()...};
}

// ---- MSV
//
// Rare: only for targets that SSV cannot decide. So the row is in memory, and one loop serves all
// model lengths. The row maximum matters only if it changes the begin score or overflows: a row
// needs a comparison but no reduction.

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
  // Only a larger E can overflow or raise B.
  const auto event_threshold = [&](int j) {
    const int begin = (parameters.base > j ? parameters.base : j) + parameters.tec;
    const int overflow = 254 - parameters.bias;
    return begin < overflow ? begin : overflow;
  };
  const auto begin_score = [&](int j) {
    return static_cast<std::uint8_t>(
        subtract(parameters.base > j ? parameters.base : j, parameters.tjb_tbm));
  };
  // -1: every E >= 0 overflows (bias 255), and no threshold byte exists.
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

template <class D>
std::size_t SsvScan(const std::uint8_t* HWY_RESTRICT table, int stripes, std::uint8_t begin,
                    std::uint8_t bias, std::uint8_t threshold, std::span<const Residue> residues,
                    std::size_t first, std::size_t last, std::uint8_t* HWY_RESTRICT row) {
  const D d;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  const std::size_t row_bytes = static_cast<std::size_t>(stripes) * kLanes;
  const auto first_lane = hn::FirstN(d, 1);
  const auto floor = hn::Set(d, begin), gain = hn::Set(d, bias), bound = hn::Set(d, threshold);
  for (std::size_t i = first; i < last; ++i) {
    const std::uint8_t* costs = table + residues[i] * row_bytes;
    auto largest = hn::Zero(d);
    auto previous =
        hn::IfThenZeroElse(first_lane, RotateLanes(d, hn::Load(d, row + row_bytes - kLanes)));
    for (std::size_t offset = 0; offset < row_bytes; offset += kLanes) {
      const auto with_bias = hn::SaturatedAdd(hn::Max(previous, floor), gain);
      const auto cell = hn::SaturatedSub(with_bias, hn::Load(d, costs + offset));
      largest = hn::Max(largest, cell);
      previous = hn::Load(d, row + offset);
      hn::Store(cell, d, row + offset);
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Eq(hn::Max(largest, bound), largest)))) return i;
  }
  return last;
}

#if HWY_TARGET == HWY_AVX3
// 32 registers; costs and gains of the 20 common residues nearly fit into the L1 cache.
constexpr std::size_t kGainVectors = 20;
constexpr std::size_t kWideVectors = 24;
constexpr std::size_t kNarrowVectors = 8;
using Bytes64 = hn::Simd<std::int8_t, 64, 0>;
#else
// 16 registers (NEON: 32) for state, maxima and rows in flight. With more than ten vectors
// compilers spill: two tiles of half the size are faster.
constexpr std::size_t kWideVectors = HWY_TARGET == HWY_NEON ? 12 : 10;
constexpr std::size_t kNarrowVectors = 8;
#endif
using Bytes16 = hn::Simd<std::int8_t, 16, 0>;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using Bytes32 = hn::Simd<std::int8_t, 32, 0>;
#endif

template <class D, std::size_t kSingle, std::size_t kTile, bool kGains = false>
SsvShape Shape() {
  static constexpr auto kSingles = SingleKernels<D, kGains>(std::make_index_sequence<kSingle>());
  static constexpr auto kGroups = GroupKernels<D, kGains>(std::make_index_sequence<kSingle>());
  static constexpr auto kTiles = TileKernels<D, kGains>(std::make_index_sequence<kTile>());
  return {.lanes = static_cast<int>(hn::MaxLanes(D())),
          .max_vectors = static_cast<int>(kSingle),
          .gains = kGains,
          .single = kSingles.data(),
          .group = kGroups.data(),
          .tile = kTile == 0 ? nullptr : kTiles.data()};
}
template <class D>
MsvShape MsvShapeOf() {
  const hn::Repartition<std::uint8_t, D> d8;
  return {static_cast<int>(hn::MaxLanes(d8)), &Msv<decltype(d8)>, &SsvScan<decltype(d8)>};
}

const ByteKernels& BytesOfTarget() {
  static const ByteKernels kernels = {
#if HWY_TARGET == HWY_AVX3
    {Shape<Bytes64, kWideVectors, kWideVectors>(),
     Shape<Bytes64, kGainVectors, kGainVectors, true>(), Shape<Bytes32, kNarrowVectors, 0>(),
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
#define HMMJIT_OF_TARGET BytesOfTarget
#include "cpu/select_kernels-inl.h"
}

}  // namespace hmmjit::cpu
#endif
