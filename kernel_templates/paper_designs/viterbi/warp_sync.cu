// Viterbi filter, a warp per sequence, DP rows in shared memory (Jiang & Ganesan 2015,
// warp-synchronous), exact for all.
//
// A warp processes a row in steps of 32 nodes, one node per lane. Rows are double-buffered: the previous row stays
// readable until the whole row is done, and no lane waits for another within a row. Remaining delete states follow
// by the parallel Lazy-F: the 32 nodes of a step take their neighbours' values until a vote of the warp finds no
// change. Residues are packed, see common/packed_residues.cuh.
//
// kNodes: nodes of a row, a multiple of 32. kShared 1: the model's scores in shared memory; 0: in
// global memory, read through the caches, for models too long for that.
#include "common/packed_residues.cuh"
#include "common/word_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : u32 { kNodes = plan_constants::kNodes };
enum : bool { kShared = plan_constants::kShared != 0 };
enum : u32 { kRowWords = kNodes + 2 };  // two before the first node, since delete states are one ahead
enum : u32 { kTableRows = kPackedTableRows + kWordTransitions };
static_assert(kNodes % 32 == 0, "whole steps of a warp");

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 2)
    viterbi_warp_sync(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  s16* const table = reinterpret_cast<s16*>(shared);
  constexpr u32 kTableWords = kShared ? kTableRows * kNodes : 0;
  if constexpr (kShared) {
    for (u32 i = threadIdx.x; i < kTableWords; i += blockDim.x) {
      const u32 row = i / kNodes;
      const int node = static_cast<int>(i % kNodes);
      table[i] = static_cast<s16>(
          row < kPackedTableRows
              ? word_emission(p, row, node)
              : word_transition(p, static_cast<WordTransition>(row - kPackedTableRows), node));
    }
    sync_block();
  }
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  s16* const rows = table + kTableWords + warp * 6 * kRowWords;
  const u32 count = exact_count(p);
  const auto transition = [&](WordTransition which, u32 node) {
    if constexpr (kShared) {
      return static_cast<int>(
          table[(kPackedTableRows + static_cast<u32>(which)) * kNodes + node]);
    } else {
      return word_transition(p, which, static_cast<int>(node));
    }
  };

  for (;;) {
    u32 slot = 0;
    if (lane == 0) slot = atomic_add(exact_counter(p), 1);
    slot = shuffle(slot, 0);
    if (slot >= count) break;
    slot = exact_slot(p, slot);
    const u32 target = list_target(p.list, slot);
    const u32 length = p.database.length[target];
    PackedResidues residues;
    residues.open(p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit,
                  length);
    WordSpecials specials = word_specials(p, target);
    for (u32 k = lane; k < 6 * kRowWords; k += 32) rows[k] = static_cast<s16>(kNegativeWord);
    sync_warp();
    s16* before = rows;  // match, insert, delete; node k at k + 2
    s16* after = rows + 3 * kRowWords;
    for (u32 i = 0; i < length && !specials.overflow; ++i) {
      const u32 x = residues.row(i, lane);
      int best = kNegativeWord;
      for (u32 k = lane; k < kNodes; k += 32) {
        const s16* const diagonal = before + k + 1;
        int m = larger(specials.B + transition(kWordEntry, k),
                       diagonal[0] + transition(kWordMmIn, k));
        m = larger(m, larger(diagonal[kRowWords] + transition(kWordImIn, k),
                             diagonal[2 * kRowWords] + transition(kWordDmIn, k)));
        const int e = kShared ? table[x * kNodes + k] : word_emission(p, x, static_cast<int>(k));
        m = saturated_word(larger(m, kNegativeWord) + e);
        best = larger(best, m);
        after[k + 2] = static_cast<s16>(m);
        after[kRowWords + k + 2] = static_cast<s16>(
            larger(kNegativeWord, larger(diagonal[1] + transition(kWordMiOut, k),
                                         diagonal[kRowWords + 1] + transition(kWordIiOut, k))));
        if (k + 1 < kNodes) {
          after[2 * kRowWords + k + 3] =
              static_cast<s16>(larger(kNegativeWord, m + transition(kWordMdOut, k)));
        }
      }
      HMMJIT_UNROLL
      for (u32 o = 16; o > 0; o /= 2) {
        best = larger(best, static_cast<int>(shuffle_xor(static_cast<u32>(best), o)));
      }
      sync_warp();
      s16* const deletion = after + 2 * kRowWords + 2;
      int entering = kNegativeWord;  // D of the node before the step
      for (u32 k = lane; k < kNodes; k += 32) {
        const int cost = k > 0 ? transition(kWordDdOut, k - 1) : kNegativeWord;
        int d = deletion[k];
        for (;;) {
          int offered = static_cast<int>(shuffle_up(static_cast<u32>(d), 1));
          if (lane == 0) offered = entering;
          offered += cost;
          const bool changes = offered > d;
          if (warp_ballot(changes) == 0) break;
          if (changes) d = offered;
        }
        deletion[k] = static_cast<s16>(d);
        entering = static_cast<int>(shuffle(static_cast<u32>(d), 31));
      }
      sync_warp();
      advance(p, best, &specials);
      s16* const swap = before;
      before = after;
      after = swap;
    }
    if (lane == 0) p.results[slot] = exact_result(specials);
    sync_warp();
  }
}
