// Viterbi filter row by row, exact for every target: a warp per sequence, 32 consecutive nodes at a
// time, the true begin score after every row, saturating 16-bit arithmetic held in 32 bits.
//
// The delete chain D(k+1) = max(M(k) + MD_k, D(k) + DD_k) is a composition of functions f(d) = max(a, d + b), which
// is associative: a prefix scan over the lanes computes a whole chunk at once. Saturation at -32768 commutes with
// it, because every a is at least -32768. Costs are at most 0 (host: viterbi_row_scan_gap), so only match scores
// saturate upwards.
#include "common/word_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kNodes = plan_constants::kNodes };
enum : bool { kShared = plan_constants::kShared != 0 };
static_assert(kNodes % 32 == 0, "whole chunks of a warp");
HMMJIT_DEVICE int shuffle_int(int value, u32 lane) {
  return static_cast<int>(shuffle(static_cast<u32>(value), lane));
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 8)
    viterbi_row_scan(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  s16* rows = reinterpret_cast<s16*>(shared) + warp * 3u * kNodes;
  if constexpr (!kShared) {
    rows = p.rows + (static_cast<u64>(blockIdx.x) * (blockDim.x / 32u) + warp) * 3u * kNodes;
  }
  s16* const match = rows;
  s16* const insert = rows + kNodes;
  s16* const deletion = rows + 2 * kNodes;
  const u32 below = (lane + 31u) % 32u;
  const bool lowest = lane == 0;
  const u32 count = exact_count(p);
  const s16* const entries = p.transitions;
  const s16* const mm_in = entries + kWordMmIn * p.stride;
  const s16* const im_in = entries + kWordImIn * p.stride;
  const s16* const dm_in = entries + kWordDmIn * p.stride;
  const s16* const md_out = entries + kWordMdOut * p.stride;
  const s16* const mi_out = entries + kWordMiOut * p.stride;
  const s16* const ii_out = entries + kWordIiOut * p.stride;
  const s16* const dd_out = entries + kWordDdOut * p.stride;

  for (;;) {
    u32 slot = 0;
    if (lowest) slot = atomic_add(exact_counter(p), 1);
    slot = shuffle(slot, 0);
    if (slot >= count) break;
    slot = exact_slot(p, slot);
    const u32 target = list_target(p.list, slot);
    const u32 length = p.database.length[target];
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    WordSpecials specials = word_specials(p, target);

    for (u32 k = lane; k < kNodes; k += 32) match[k] = insert[k] = deletion[k] = kNegativeWord;
    sync_warp();
    for (u32 i = 0; i < length && !specials.overflow; ++i) {
      const u32 x = residues[i];
      const s16* const emissions = p.emissions + (x < kSymbolRows ? x : kSymbolRows - 1u) * p.stride;
      // In lane 0: values of the node before the chunk, from the previous row; D from this row.
      int held_m = kNegativeWord, held_i = kNegativeWord, held_d = kNegativeWord, entering_d = kNegativeWord;
      int best = kNegativeWord;
      for (u32 chunk = 0; chunk < kNodes; chunk += 32) {
        const u32 k = chunk + lane;
        const bool inside = k < p.model_length;
        const int old_m = match[k], old_i = insert[k], old_d = deletion[k];
        int diagonal_m = shuffle_int(old_m, below), diagonal_i = shuffle_int(old_i, below),
            diagonal_d = shuffle_int(old_d, below);
        const int last_m = diagonal_m, last_i = diagonal_i, last_d = diagonal_d;
        if (lowest) {
          diagonal_m = held_m;
          diagonal_i = held_i;
          diagonal_d = held_d;
        }
        held_m = last_m;
        held_i = last_i;
        held_d = last_d;

        int m = kNegativeWord, in = kNegativeWord, a = kNegativeWord, b = kNegativeWord;
        if (inside) {
          m = larger(specials.B + entries[k], diagonal_m + mm_in[k]);
          m = larger(m, larger(diagonal_i + im_in[k], diagonal_d + dm_in[k]));
          m = saturated_word(larger(m, kNegativeWord) + emissions[k]);
          in = larger(kNegativeWord, larger(old_m + mi_out[k], old_i + ii_out[k]));
          a = larger(kNegativeWord, m + md_out[k]);
          b = dd_out[k];
        }
        best = larger(best, m);
        for (u32 o = 1; o < 32; o *= 2) {
          const int up_a = shuffle_int(a, lane - o), up_b = shuffle_int(b, lane - o);
          if (lane >= o) {
            a = larger(a, up_a + b);
            b += up_b;
          }
        }
        const int leaving = shuffle_int(larger(a, entering_d + b), below);
        const int d = lowest ? entering_d : leaving;
        entering_d = shuffle_int(leaving, 0);  // lane 0 holds the last lane's outflow
        match[k] = static_cast<s16>(m);
        insert[k] = static_cast<s16>(in);
        deletion[k] = static_cast<s16>(d);
      }
      for (u32 o = 16; o > 0; o /= 2) {
        best = larger(best, static_cast<int>(shuffle_xor(static_cast<u32>(best), o)));
      }
      advance(p, best, &specials);
    }
    if (lowest) p.results[slot] = exact_result(specials);
    sync_warp();
  }
}
