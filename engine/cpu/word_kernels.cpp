// Viterbi filter in 16-bit words; each pass of foreach_target is an instruction set.
//
// Striped as in Farrar (2007). D(i,k) affects the result only through M(i+1,k+1). In almost every
// row no path with two or more consecutive deletes can beat B->M, so normally a row has no D:
// M(i-1,k-2) -> D -> M(i,k) is one transition (kMDM). D is computed only after rows for which
// FilterTables' bound (kDeleteBound) shows that longer paths may matter.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/word_kernels.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include <algorithm>

#include "cpu/kernels.hpp"
#include "cpu/lanes-inl.h"
#include "hwy/highway.h"

#if HMMJIT_CPU_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
class ViterbiRows {
 public:
  using V = hn::Vec<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());

  ViterbiRows(const ViterbiTables& tables, std::int16_t* rows)
      : transitions_(tables.transitions),
        deletes_(tables.deletes),
        stripes_(static_cast<std::size_t>(tables.stripes)),
        match_(rows),
        insert_(rows + stripes_ * kLanes),
        delete_(rows + 2 * stripes_ * kLanes) {
    Clear();
  }

  /// Sets match and insert cells to minus infinity. Delete cells need no reset: they are not read.
  HWY_INLINE void Clear() {
    for (std::size_t j = 0; j < 2 * stripes_; ++j) hn::Store(Floor(), D(), match_ + j * kLanes);
  }
  /// Appends the nodes of the row at which M equals E.
  HWY_INLINE void Record(int row, int E, int M, std::vector<reference::Diagonal>& records) const {
    const auto largest = hn::Set(D(), static_cast<std::int16_t>(E));
    for (std::size_t q = 0; q < stripes_; ++q) {
      const std::int16_t* const cells = match_ + q * kLanes;
      if (hn::AllFalse(D(), hn::Eq(hn::Load(D(), cells), largest))) continue;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const int k = static_cast<int>(lane * stripes_ + q) + 1;
        if (cells[lane] == E && k <= M) records.push_back({row, k, 1});
      }
    }
  }

  /// Computes one row and returns the largest M in each lane. `kDeletes`: the previous row has
  /// delete states; also computes this row's, except across lanes (FinishDeletes).
  template <bool kDeletes>
  HWY_INLINE V Advance(const std::int16_t* HWY_RESTRICT scores, V begin) {
    const D d;
    std::int16_t* HWY_RESTRICT match = match_;
    std::int16_t* HWY_RESTRICT insert = insert_;
    std::int16_t* HWY_RESTRICT deletes = delete_;
    const std::int16_t* HWY_RESTRICT t = transitions_;
    const std::int16_t* HWY_RESTRICT dt = deletes_;
    const std::size_t last = (stripes_ - 1) * kLanes;
    V match1 = Shift(hn::Load(d, match + last));  // M(i-1,k-1)
    V match2 = Floor();                           // M(i-1,k-2)
    V delete1 = Floor();                          // D(i-1,k-1)
    V delete0 = Floor();                          // D(i,k)
    if constexpr (kDeletes) {
      delete1 = Shift(hn::Load(d, deletes + last));
    } else {
      match2 = stripes_ == 1 ? Shift(match1) : Shift(hn::Load(d, match + last - kLanes));
    }
    V insert1 = Shift(hn::Load(d, insert + last));
    V largest = Floor();
    for (std::size_t offset = 0; offset <= last; offset += kLanes) {
      V cell = hn::SaturatedAdd(begin, hn::Load(d, t + kEntry * kLanes));
      cell = hn::Max(cell, hn::SaturatedAdd(insert1, hn::Load(d, t + kIM * kLanes)));
      V other = hn::SaturatedAdd(match1, hn::Load(d, t + kMM * kLanes));
      if constexpr (kDeletes) {
        other = hn::Max(other, hn::SaturatedAdd(delete1, hn::Load(d, dt + kDM * kLanes)));
      } else {
        other = hn::Max(other, hn::SaturatedAdd(match2, hn::Load(d, t + kMDM * kLanes)));
        match2 = match1;
      }
      cell = hn::SaturatedAdd(hn::Max(cell, other), hn::Load(d, scores + offset));
      largest = hn::Max(largest, cell);
      match1 = hn::Load(d, match + offset);
      insert1 = hn::Load(d, insert + offset);
      const V inserted = hn::Max(hn::SaturatedAdd(match1, hn::Load(d, t + kMI * kLanes)),
                                 hn::SaturatedAdd(insert1, hn::Load(d, t + kII * kLanes)));
      hn::Store(cell, d, match + offset);
      hn::Store(inserted, d, insert + offset);
      if constexpr (kDeletes) {
        delete1 = hn::Load(d, deletes + offset);
        hn::Store(delete0, d, deletes + offset);
        delete0 = hn::Max(hn::SaturatedAdd(cell, hn::Load(d, dt + kMD * kLanes)),
                          hn::SaturatedAdd(delete0, hn::Load(d, dt + kDD * kLanes)));
        dt += kDeleteWords * kLanes;
      }
      t += kViterbiWords * kLanes;
    }
    if constexpr (kDeletes) leaving_ = delete0;
    return largest;
  }

  /// True if a path through two or more deletes from this row can beat B->M.
  HWY_INLINE bool NeedsDeletes(V begin) const {
    const D d;
    V above = Floor();
    for (std::size_t q = 0; q < stripes_; ++q) {
      above = hn::Max(
          above, hn::SaturatedAdd(hn::Load(d, match_ + q * kLanes), DeleteWords(q, kDeleteBound)));
    }
    return !hn::AllFalse(d, hn::Gt(above, begin));
  }

  /// Computes D(i,k) within lanes, after Advance<false>.
  HWY_INLINE void StartDeletes() {
    const D d;
    V current = Floor();
    for (std::size_t q = 0; q < stripes_; ++q) {
      hn::Store(current, d, delete_ + q * kLanes);
      current = hn::Max(hn::SaturatedAdd(hn::Load(d, match_ + q * kLanes), DeleteWords(q, kMD)),
                        hn::SaturatedAdd(current, DeleteWords(q, kDD)));
    }
    leaving_ = current;
  }

  /// Computes D(i,k) across lanes. Each pass extends by one lane, until no cell improves that could
  /// beat B->M on its return to a match state (kDeleteReturn); `kAll`: until no cell improves.
  template <bool kAll>
  HWY_INLINE void FinishDeletes(V begin) {
    const D d;
    V extended = leaving_;
    for (;;) {
      extended = Shift(extended);
      for (std::size_t q = 0; q < stripes_; ++q) {
        const V current = hn::Load(d, delete_ + q * kLanes);
        auto matters = hn::Gt(extended, current);
        if constexpr (!kAll) {
          const V returned = hn::SaturatedAdd(extended, DeleteWords(q, kDeleteReturn));
          matters = hn::And(matters, hn::Gt(returned, begin));
        }
        if (hn::AllFalse(d, matters)) return;
        const V improved = hn::Max(extended, current);
        hn::Store(improved, d, delete_ + q * kLanes);
        extended = hn::SaturatedAdd(improved, DeleteWords(q, kDD));
      }
    }
  }

 private:
  HWY_INLINE V DeleteWords(std::size_t q, DeleteWord word) const {
    return hn::Load(D(), deletes_ + (q * kDeleteWords + word) * kLanes);
  }
  static HWY_INLINE V Floor() { return hn::Set(D(), std::int16_t{-32768}); }
  static HWY_INLINE V Shift(V v) {
    return hn::IfThenElse(hn::FirstN(D(), 1), Floor(), RotateLanes(D(), v));
  }

  const std::int16_t* transitions_;
  const std::int16_t* deletes_;
  std::size_t stripes_;
  std::int16_t* match_;
  std::int16_t* insert_;
  std::int16_t* delete_;
  V leaving_ = Floor();  // output across lanes of the last stripe's D
};

// Stops once the largest M of a row reaches `limit`. `kScan`: instead records the cells of such a
// row and clears it; the row then changes no special state.
template <class D, bool kScan>
HWY_INLINE int ViterbiPass(const ViterbiTables& tables, int move, int limit, int M,
                           std::span<const Residue> residues, std::int16_t* rows,
                           std::vector<reference::Diagonal>* records) {
  const D d;
  constexpr int kFloor = -32768;
  const std::size_t row_words = static_cast<std::size_t>(tables.stripes) * hn::MaxLanes(D());
  ViterbiRows<D> state(tables, rows);
  const auto lane_bound = hn::Load(d, tables.lane_bound);
  int J = kFloor;
  // B changes only with J, and J only if E reaches it: lower rows need no reduction over lanes.
  const auto event_threshold = [&](int j) {
    return std::clamp(std::max(j, tables.base) - tables.ej, kFloor, std::max(kFloor, limit - 1));
  };
  const auto begin_score = [&](int j) {
    return static_cast<std::int16_t>(std::max(j, tables.base) + move);
  };
  auto begin = hn::Set(d, begin_score(J));
  auto threshold = hn::Set(d, static_cast<std::int16_t>(event_threshold(J)));
  auto best = hn::Set(d, std::int16_t{kFloor});
  bool deletes = false;
  for (std::size_t i = 0; i < residues.size(); ++i) {
    const std::int16_t* scores = tables.match + residues[i] * row_words;
    const auto largest = deletes ? state.template Advance<true>(scores, begin)
                                 : state.template Advance<false>(scores, begin);
    best = hn::Max(best, largest);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(largest, threshold)))) {
      const int E = LargestLane(d, largest);
      if constexpr (kScan) {
        if (E >= limit) {
          state.Record(static_cast<int>(i) + 1, E, M, *records);
          state.Clear();
          deletes = false;
          continue;
        }
      } else if (E >= limit) {
        return kViterbiOverflow;
      }
      J = std::max(J, E + tables.ej);
      begin = hn::Set(d, begin_score(J));
      threshold = hn::Set(d, static_cast<std::int16_t>(event_threshold(J)));
    }
    // After a row with delete states, Advance<true> has computed this row's too: the bound of each
    // lane, loose but free, decides whether they matter. Otherwise NeedsDeletes decides.
    if (HWY_UNLIKELY(tables.always_deletes)) {
      if (!deletes) state.StartDeletes();
      state.template FinishDeletes<true>(begin);
      deletes = true;
    } else if (hn::AllFalse(d, hn::Gt(hn::SaturatedAdd(largest, lane_bound), begin))) {
      deletes = false;
    } else if (deletes) {
      state.template FinishDeletes<false>(begin);
    } else if (state.NeedsDeletes(begin)) {
      state.StartDeletes();
      state.template FinishDeletes<false>(begin);
      deletes = true;
    }
  }
  return std::max(kFloor, LargestLane(d, best) + tables.ec);
}

template <class D>
int Viterbi(const ViterbiTables& tables, int move, std::span<const Residue> residues,
            std::int16_t* rows) {
  return ViterbiPass<D, false>(tables, move, 32767, 0, residues, rows, nullptr);
}

template <class D>
void ViterbiScan(const ViterbiTables& tables, int move, int threshold, int M,
                 std::span<const Residue> residues, std::int16_t* rows,
                 std::vector<reference::Diagonal>& records) {
  ViterbiPass<D, true>(tables, move, threshold, M, residues, rows, &records);
}

template <class D>
ViterbiShape Shape() {
  return {static_cast<int>(hn::MaxLanes(D())), &Viterbi<D>, &ViterbiScan<D>};
}

const WordKernels& WordsOfTarget() {
  static const WordKernels kernels = {{
#if HWY_TARGET == HWY_AVX3
      Shape<hn::Simd<std::int16_t, 32, 0>>(),
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
      Shape<hn::Simd<std::int16_t, 16, 0>>(),
#endif
      Shape<hn::Simd<std::int16_t, 8, 0>>(),
  }};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace hmmjit::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace hmmjit::cpu {

const WordKernels* word_kernels(std::int64_t target) {
#define HMMJIT_OF_TARGET WordsOfTarget
#include "cpu/select_kernels-inl.h"
}

}  // namespace hmmjit::cpu
#endif
