// Viterbi filter row by row, exact for every target, with low latency per row: for the targets that a wavefront
// kernel flags, which are few, so that the longest one bounds the launch.
//
// One or several warps per sequence; every lane owns H consecutive nodes, cells and costs in registers. The outflow
// of a lane's delete chain is max(a, d + b) of its inflow d, with the same b in every row: one max-plus prefix scan
// per row over one value per lane, with multipliers computed once. With several warps each publishes its outflow
// without inflow, and a single barrier per row combines them (as in forward/row_scan.cu). Saturation as in
// viterbi/row_scan.cu: every a is at least -32768, so the scan may use plain sums; costs are at most 0.
#include "common/word_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kH = plan_constants::kH };
enum : int { kWarps = plan_constants::kWarps };  // per sequence
static_assert(plan_constants::kThreads % 32 == 0, "whole warps");
static_assert(kWarps == 1 || plan_constants::kThreads == 32 * kWarps, "a block per sequence");

enum : int { kNothing = -(1 << 29) };  // below any sum of costs

struct WarpRow {
  int leaving;  // delete flow to the next warp if nothing entered this one
  int end;      // its best match cell
  int match, insert, deletion;  // its last node, likewise
};

HMMJIT_DEVICE int shuffle_int(int value, u32 lane) {
  return static_cast<int>(shuffle(static_cast<u32>(value), lane));
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, plan_constants::kBlocks)
    viterbi_lane_scan(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  // Two rows of records, the factors of the warps (leaving, at the last node), the next slot.
  WarpRow* const warp_rows = reinterpret_cast<WarpRow*>(shared);
  int* const factors = reinterpret_cast<int*>(warp_rows + 2 * kWarps);
  u32* const next_slot = reinterpret_cast<u32*>(factors + 2 * kWarps);

  const u32 lane = threadIdx.x % 32u, warp = kWarps > 1 ? threadIdx.x / 32u : 0u;
  const u32 below = lane == 0 ? 0u : lane - 1;
  const bool first = lane == 0;
  const int node = static_cast<int>(warp * 32u + lane) * kH;

  int bm[kH], mm[kH], im[kH], dm[kH], md[kH], dd[kH], mi[kH], ii[kH];
  int own_factor = 0, last_factor = 0;
  HMMJIT_UNROLL
  for (int j = 0; j < kH; ++j) {
    bm[j] = word_transition(p, kWordEntry, node + j);
    mm[j] = word_transition(p, kWordMmIn, node + j);
    im[j] = word_transition(p, kWordImIn, node + j);
    dm[j] = word_transition(p, kWordDmIn, node + j);
    md[j] = word_transition(p, kWordMdOut, node + j);
    dd[j] = word_transition(p, kWordDdOut, node + j);
    mi[j] = word_transition(p, kWordMiOut, node + j);
    ii[j] = word_transition(p, kWordIiOut, node + j);
    last_factor = own_factor;
    own_factor += dd[j];
  }
  int scan_factor[5];
  int entering_factor = 0;
  {
    int product = own_factor;
    HMMJIT_UNROLL
    for (int s = 0; s < 5; ++s) {
      const u32 distance = 1u << s;
      const bool reaches = lane >= distance;
      scan_factor[s] = reaches ? product : kNothing;
      const int other = shuffle_int(product, lane - distance);
      if (reaches) product += other;
    }
    const int before = shuffle_int(product, below);
    if (!first) entering_factor = before;
  }
  if constexpr (kWarps > 1) {
    if (lane == 31) {
      factors[2 * warp] = entering_factor + own_factor;
      factors[2 * warp + 1] = entering_factor + last_factor;
    }
    sync_block();
  }

  const u32 count = exact_count(p);
  for (;;) {
    u32 slot = 0;
    if constexpr (kWarps > 1) {
      if (threadIdx.x == 0) *next_slot = atomic_add(exact_counter(p), 1);
      sync_block();
      slot = *next_slot;
      sync_block();
    } else {
      if (first) slot = atomic_add(exact_counter(p), 1);
      slot = shuffle(slot, 0);
    }
    if (slot >= count) break;
    slot = exact_slot(p, slot);
    const u32 target = list_target(p.list, slot);
    const u32 length = p.database.length[target];
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    WordSpecials specials = word_specials(p, target);

    int m[kH], ins[kH], del[kH], e[kH];
    HMMJIT_UNROLL
    for (int j = 0; j < kH; ++j) m[j] = ins[j] = del[j] = e[j] = kNegativeWord;
    int before_m = kNegativeWord, before_i = kNegativeWord, before_d = kNegativeWord;
    if (length > 0) {
      HMMJIT_UNROLL
      for (int j = 0; j < kH; ++j) e[j] = word_emission(p, residues[0] & 31u, node + j);
    }
    for (u32 i = 0; i < length && !specials.overflow; ++i) {
      const u32 ahead = i + 1 < length ? residues[i + 1] & 31u : static_cast<u32>(kPaddingResidue);
      int diagonal_m = shuffle_int(m[kH - 1], below);
      int diagonal_i = shuffle_int(ins[kH - 1], below);
      int diagonal_d = shuffle_int(del[kH - 1], below);
      if (first) {
        diagonal_m = before_m;
        diagonal_i = before_i;
        diagonal_d = before_d;
      }
      int best = kNegativeWord, flow = kNothing;
      HMMJIT_UNROLL
      for (int j = 0; j < kH; ++j) {
        const int old_m = m[j], old_i = ins[j], old_d = del[j];
        int v = larger(specials.B + bm[j], kNegativeWord);
        v = larger(diagonal_m + mm[j], v);
        v = larger(diagonal_i + im[j], v);
        v = larger(diagonal_d + dm[j], v) + e[j];
        v = saturated_word(v);
        if (node + j >= static_cast<int>(p.model_length)) v = kNegativeWord;
        e[j] = word_emission(p, ahead, node + j);
        m[j] = v;
        ins[j] = larger(old_i + ii[j], larger(old_m + mi[j], kNegativeWord));
        del[j] = flow;
        best = larger(best, v);
        flow = larger(flow + dd[j], larger(v + md[j], kNegativeWord));
        diagonal_m = old_m;
        diagonal_i = old_i;
        diagonal_d = old_d;
      }
      HMMJIT_UNROLL
      for (int s = 0; s < 5; ++s) {
        flow = larger(flow, shuffle_int(flow, lane - (1u << s)) + scan_factor[s]);
      }
      int entering = shuffle_int(flow, below);
      if (first) entering = warp == 0 ? kNegativeWord : kNothing;
      HMMJIT_UNROLL
      for (u32 o = 16; o > 0; o /= 2) {
        best = larger(best, static_cast<int>(shuffle_xor(static_cast<u32>(best), o)));
      }
      if constexpr (kWarps > 1) {
        WarpRow* const records = warp_rows + (i % 2u) * kWarps;
        if (lane == 31) {
          records[warp].leaving = flow;
          records[warp].end = best;
          records[warp].match = m[kH - 1];
          records[warp].insert = ins[kH - 1];
          records[warp].deletion = larger(del[kH - 1], entering + last_factor);
        }
        sync_block();
        int into = kNegativeWord;  // inflow of warp w
        before_m = before_i = before_d = kNegativeWord;
        for (u32 w = 0; w < kWarps; ++w) {
          const WarpRow record = records[w];
          best = larger(best, record.end);
          if (w == warp) entering = larger(entering, into + entering_factor);
          if (w + 1 == warp) {
            before_m = record.match;
            before_i = record.insert;
            before_d = larger(record.deletion, into + factors[2 * w + 1]);
          }
          into = larger(record.leaving, into + factors[2 * w]);
        }
      }
      HMMJIT_UNROLL
      for (int j = 0; j < kH; ++j) {
        del[j] = larger(del[j], entering);
        entering += dd[j];
      }
      advance(p, best, &specials);
    }
    if (first && warp == 0) p.results[slot] = exact_result(specials);
  }
}
