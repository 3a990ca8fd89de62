// Finishes the scores of every SSV and MSV kernel: HMMER's decision rules (spec of the MSV filter: value,
// overflow, no result), the F1 gate and on-device compaction.
#ifndef HMMJIT_KERNEL_BYTE_FILTER_CUH_
#define HMMJIT_KERNEL_BYTE_FILTER_CUH_

#include "common/intrinsics.cuh"

namespace hmmjit_device {

/// The SSV filter's decision for the largest cell value; u = 128 + value, at most 255.
HMMJIT_DEVICE FilterResult decide_ssv(const ByteFilterParams& p, const LengthClass& c, u32 u) {
  if (!c.ssv_usable) return u | (kStatusNoResult << 16);
  const int limit = 255 - p.bias;
  const int begin = static_cast<int>(p.base) - c.tjb - p.tbm;
  if (static_cast<int>(u) >= limit) {
    return u | ((begin < 128 ? kStatusNoResult : kStatusOverflow) << 16) |
           (begin >= 128 && c.overflow_passes ? static_cast<u32>(kResultPassed) : 0u);
  }
  const int v = static_cast<int>(u) + begin - 128;
  if (v >= limit) {
    return u | (kStatusOverflow << 16) |
           (c.overflow_passes ? static_cast<u32>(kResultPassed) : 0u);
  }
  if (v - static_cast<int>(p.tec) > static_cast<int>(p.base)) return u | (kStatusNoResult << 16);
  return u | (kStatusScore << 16) | (u >= c.ssv_gate ? static_cast<u32>(kResultPassed) : 0u);
}

/// The MSV filter's answer for the largest cell value of the full recurrence.
HMMJIT_DEVICE FilterResult decide_msv(const ByteFilterParams& p, const LengthClass& c, u32 best) {
  if (best + p.bias >= 255u) {
    return 255u | (kStatusOverflow << 16) | kResultMsv |
           (c.overflow_passes ? static_cast<u32>(kResultPassed) : 0u);
  }
  const u32 j = best > p.tec ? best - p.tec : 0u;
  return j | (kStatusScore << 16) | kResultMsv |
         (j >= c.msv_gate ? static_cast<u32>(kResultPassed) : 0u);
}

/// Called by one lane per target.
HMMJIT_DEVICE void publish(const ByteFilterParams& p, u32 target, FilterResult result) {
  if (p.results) p.results[target] = result;
  if (((result >> 16) & 3u) == kStatusNoResult) {
    if (p.undecided) p.undecided[atomic_add(&p.counters->undecided, 1)] = target;
  } else if ((result & kResultPassed) && p.survivors) {
    Survivor s;
    s.target = target;
    s.result = result;
    p.survivors[atomic_add(&p.counters->survivors, 1)] = s;
  }
}

/// Finishes one item of an SSV launch and combines the pieces of split targets.
HMMJIT_DEVICE void finish_ssv(const ByteFilterParams& p, const WorkItem& item, u32 best) {
  u32 u = 128u + (best > 127u ? 127u : best);
  if (item.split != kWholeTarget) {
    SplitState* s = p.splits + item.split;
    atomic_max(&s->best, u);
    fence();
    if (atomic_add(&s->missing, ~0u) != 1) return;
    fence();
    u = atomic_max(&s->best, 0);
    s->best = 0;
    s->missing = s->pieces;
  }
  publish(p, item.target,
          decide_ssv(p, p.classes[p.database.length_class[item.target]], u));
}

/// Residues of one item, four at a time, prefetched by one step. kQuad fetches 16 instead of 4: for kernels whose
/// resident warps read so many targets that a cache line is evicted before the next fetch; elsewhere the extra
/// registers cost more than the fetches. After the end it returns padding while other items of the warp continue.
/// kReversible: may also read backwards from the end of the residues.
template <bool kQuad, bool kReversible = false>
struct ResidueStream {
  const u8* residues;
  u32 order;   // of the bytes of a word
  u32 pieces;  // fetches the item consists of
  u32 at;      // fetches made
  Quad now, ahead;
  enum : u32 { kForward = 0x3210, kBackward = 0x0123 };

  HMMJIT_DEVICE Quad fetch(u32 index) const {
    Quad quad;
    quad.x = quad.y = quad.z = quad.w = kPaddingResidue * 0x01010101u;
    if (index < pieces) {
      const s64 place = kReversible && order != kForward ? -1 - static_cast<s64>(index) : index;
      if constexpr (kQuad) quad = load_quad(residues + place * 16);
      else quad.x = load_word(residues + place * 4);
    }
    if constexpr (kReversible) {
      if (kQuad && order != kForward) {
        const Quad q = quad;
        quad.x = q.w;
        quad.y = q.z;
        quad.z = q.y;
        quad.w = q.x;
      }
      quad.x = byte_permute(quad.x, 0, order);
      if constexpr (kQuad) {
        quad.y = byte_permute(quad.y, 0, order);
        quad.z = byte_permute(quad.z, 0, order);
        quad.w = byte_permute(quad.w, 0, order);
      }
    }
    return quad;
  }
  HMMJIT_DEVICE void open(const ByteFilterParams& p, const WorkItem& item) {
    order = kReversible && p.reverse ? kBackward : kForward;
    const s64 start = static_cast<s64>(item.start) * kStartUnit;
    residues = p.database.residues + (order == kForward ? start : -start);
    pieces = kQuad ? (item.rows + 15) / 16 : (item.rows + 3) / 4;
    at = 0;
    now = ahead = fetch(0);
  }
  /// Word `index`; called for 0, 1, 2, ... in turn.
  HMMJIT_DEVICE u32 word(u32 index) {
    if (!kQuad || index % 4 == 0) {
      now = ahead;
      ahead = fetch(++at);
    }
    const u32 first = now.x;
    if constexpr (kQuad) {
      now.x = now.y;
      now.y = now.z;
      now.z = now.w;
    }
    return first;
  }
};
/// Sequences in flight on an SM above which 16-byte fetches pay (measured on an H200).
enum : int { kManySequences = 448 };

/// Items of an MSV launch: `items`, or the targets that an SSV launch left undecided.
HMMJIT_DEVICE u32 msv_item_count(const ByteFilterParams& p) {
  return p.items ? p.item_count : p.counters->undecided;
}
HMMJIT_DEVICE u32* msv_work_counter(const ByteFilterParams& p) {
  return p.items ? &p.counters->next : &p.counters->next_undecided;
}
HMMJIT_DEVICE WorkItem msv_item(const ByteFilterParams& p, u32 index) {
  if (p.items) return p.items[index];
  WorkItem item;
  item.target = p.undecided[index];
  item.start = p.database.start[item.target];
  item.rows = p.database.length[item.target];
  item.split = kWholeTarget;
  return item;
}

/// Special states of one target: B follows J, which follows the best end score.
struct MsvSpecials {
  int move;   // cost J/N -> B -> M_k
  int begin;  // B
  int limit;  // best cell value up to which B does not change
};
HMMJIT_DEVICE MsvSpecials msv_start(const ByteFilterParams& p, const LengthClass& c) {
  MsvSpecials s;
  s.move = (static_cast<int>(c.tjb) + p.tbm) & 255;
  s.begin = p.base > s.move ? p.base - s.move : 0;
  s.limit = p.base + p.tec;
  return s;
}
HMMJIT_DEVICE void msv_raise(const ByteFilterParams& p, int best, MsvSpecials* s) {
  const int j = best - static_cast<int>(p.tec);
  if (j <= s->limit - static_cast<int>(p.tec)) return;
  s->limit = best;
  s->begin = j > s->move ? j - s->move : 0;
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_BYTE_FILTER_CUH_
