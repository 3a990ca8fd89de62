// Viterbi filter, a warp per sequence, striped (CUDAMPF, Jiang & Ganesan 2016; striping and Lazy-F
// after Farrar 2007), exact for all.
//
// A warp is one vector of 64 saturating 16-bit cells: cell c = 2*lane + half holds node c*Q + q in word q. A row is
// one pass over the words; delete states that cross a stripe follow by the parallel Lazy-F: further passes until a
// vote of the warp finds no change. See common/striped.cuh for the place of the rows.
//
// kShared 1: scores of the model in shared memory, laid out for conflict-free reads
// (38 rows of 128 Q bytes). kShared 0: gathered through the caches.
#include "common/striped.cuh"
#include "common/video.cuh"
#include "common/word_filter.cuh"

namespace hmmjit_device {
namespace {

enum : bool { kShared = plan_constants::kShared != 0 };
enum : u32 { kCells = 64 };
enum : u32 { kSymbols = 30 };  // codes 0..28 and one impossible row for all others
enum : u32 { kTableRows = kSymbols + kWordTransitions };
enum : u32 { kNone = 0x80008000u };  // two times -32768

/// Scores of table row `row` for word q of a lane.
HMMJIT_DEVICE u32 score_word(const WordFilterParams& p, u32 row, int lane, int q, int words) {
  const int low = 2 * lane * words + q, high = low + words;
  if (row < kSymbols) return pack_words(word_emission(p, row, low), word_emission(p, row, high));
  const auto which = static_cast<WordTransition>(row - kSymbols);
  return pack_words(word_transition(p, which, low), word_transition(p, which, high));
}

/// Every cell takes the value of the previous cell; the first takes minus infinity.
HMMJIT_DEVICE u32 moved_up(u32 word, u32 lane) {
  const u32 below = shuffle_up(word, 1);
  return byte_permute(lane == 0 ? kNone : below, word, 0x5432);
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 1)
    viterbi_warp_striped(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  u32* const table = reinterpret_cast<u32*>(shared);
  const int words = striped_words(p.model_length, kCells);
  if constexpr (kShared) {
    const u32 row_words = static_cast<u32>(words) * 32;
    for (u32 i = threadIdx.x; i < kTableRows * row_words; i += blockDim.x) {
      table[i] = score_word(p, i / row_words, static_cast<int>(i % 32),
                            static_cast<int>(i % row_words / 32), words);
    }
    sync_block();
  }
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  StripedRow match, insert, deletion;
  if constexpr (kRowsShared) {
    const u32 size = static_cast<u32>(words) * 32;
    u32* const rows = table + ((kShared ? kTableRows : 0u) + 3 * warp) * size;
    match.open(rows, lane);
    insert.open(rows + size, lane);
    deletion.open(rows + 2 * size, lane);
  }
  const u32 count = exact_count(p);
  for (;;) {
    u32 slot = 0;
    if (lane == 0) slot = atomic_add(exact_counter(p), 1);
    slot = shuffle(slot, 0);
    if (slot >= count) break;
    slot = exact_slot(p, slot);
    const u32 target = list_target(p.list, slot);
    const u32 length = p.database.length[target];
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    WordSpecials specials = word_specials(p, target);
    HMMJIT_UNROLL_BY(kUnrolled)
    for (int q = 0; q < words; ++q) {
      match.set(q, kNone);
      insert.set(q, kNone);
      deletion.set(q, kNone);
    }
    u32 four = 0;
    for (u32 i = 0; i < length && !specials.overflow; ++i) {
      four = i % 4 == 0 ? load_word(residues + i) : four >> 8;
      u32 x = four & 0xffu;
      x = x < kSymbols ? x : kSymbols - 1;
      int gather_lane = static_cast<int>(lane);
#ifndef HMMJIT_LOCKSTEP
      // Recomputed in every row: otherwise the compiler keeps all addresses in registers.
      if constexpr (!kShared) asm volatile("" : "+r"(gather_lane));
#endif
      const auto scores = [&](u32 row, int q) {
        if constexpr (kShared) return table[(row * static_cast<u32>(words) + static_cast<u32>(q)) * 32 + lane];
        else return score_word(p, row, gather_lane, q, words);
      };
      const auto costs = [&](WordTransition which, int q) {
        return scores(kSymbols + static_cast<u32>(which), q);
      };
      const int clipped = larger(specials.B, kNegativeWord);
      const u32 begin = pack_words(clipped, clipped);
      u32 diagonal_m = moved_up(match.get(words - 1), lane);
      u32 diagonal_i = moved_up(insert.get(words - 1), lane);
      u32 diagonal_d = moved_up(deletion.get(words - 1), lane);
      u32 top = kNone, flow = kNone;
      HMMJIT_UNROLL_BY(kUnrolled)
      for (int q = 0; q < words; ++q) {
        const u32 old_m = match.get(q), old_i = insert.get(q), old_d = deletion.get(q);
        u32 m = add_saturate_s16x2(begin, costs(kWordEntry, q));
        m = max_s16x2(m, add_saturate_s16x2(diagonal_m, costs(kWordMmIn, q)));
        m = max_s16x2(m, add_saturate_s16x2(diagonal_i, costs(kWordImIn, q)));
        m = max_s16x2(m, add_saturate_s16x2(diagonal_d, costs(kWordDmIn, q)));
        m = add_saturate_s16x2(m, scores(x, q));
        top = max_s16x2(top, m);
        match.set(q, m);
        insert.set(q, max_s16x2(add_saturate_s16x2(old_m, costs(kWordMiOut, q)),
                                add_saturate_s16x2(old_i, costs(kWordIiOut, q))));
        deletion.set(q, flow);
        flow = max_s16x2(add_saturate_s16x2(m, costs(kWordMdOut, q)),
                         add_saturate_s16x2(flow, costs(kWordDdOut, q)));
        diagonal_m = old_m;
        diagonal_i = old_i;
        diagonal_d = old_d;
      }
      flow = moved_up(flow, lane);
      bool settled = false;
      for (u32 pass = 0; pass < kCells && !settled; ++pass) {
        HMMJIT_UNROLL_BY(kUnrolled)
        for (int q = 0; q < words; ++q) {
          const u32 d = deletion.get(q), raised = max_s16x2(d, flow);
          // A cell has already passed on any value that it does not take here.
          if (warp_ballot(raised != d) == 0) {
            settled = true;
            break;
          }
          deletion.set(q, raised);
          flow = add_saturate_s16x2(raised, costs(kWordDdOut, q));
        }
        flow = moved_up(flow, lane);
      }
      HMMJIT_UNROLL
      for (u32 o = 16; o > 0; o /= 2) top = max_s16x2(top, shuffle_xor(top, o));
      advance(p, larger(low_word(top), high_word(top)), &specials);
    }
    if (lane == 0) p.results[slot] = exact_result(specials);
  }
}
