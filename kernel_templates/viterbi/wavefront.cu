// Viterbi filter as a systolic wavefront, cells as packed 16-bit integers (DPX on sm_90 and later).
//
// L lanes score one sequence and form 2L virtual lanes: the low and the high half of every word. Virtual lane v
// owns H consecutive nodes and processes row t - v at step t. A delete path thus runs along one lane's own
// registers and crosses lanes with the same shuffle as everything else, on the row that the neighbour processed one
// step ago: no Lazy-F loop, no vote (unlike Farrar 2007).
//
// The begin score is assumed constant (J is speculated away, after Li et al. 2012) and the answer is checked; see
// late_params.h for the proof that wrapping additions are exact otherwise.
//
//   M(i,k) = max(B + BM_k, M(i-1,k-1) + MM, I(i-1,k-1) + (MI + IM), D(i-1,k-1) + DM) + e_k(x_i)
//   I(i,k) = max(M(i-1,k), I(i-1,k) + II)        stored without its M->I cost, added on leaving
//   D(i,k) = max(M(i,k-1) + MD, D(i,k-1) + DD)
//
// Models longer than 64 H nodes are split into tiles, one launch each; the boundary column of each row is passed
// through memory.
#include "common/word_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kL = plan_constants::kL };
enum : int { kH = plan_constants::kH };
enum : bool { kTiled = plan_constants::kTiled != 0 };
static_assert(plan_constants::kS * kL == 32, "a warp holds S sequences of L lanes");
static_assert(!kTiled || kL == 32, "tiles are one warp wide");

enum : int { kTileNodes = 2 * kL * kH };
enum : bool { kWide = plan_constants::kWide != 0 };
// A virtual lane's match scores are loaded 16 bytes at a time: four nodes, each in its half of the word, so that an
// addition on the multiply-add pipe joins a low and a high one; or, if shared memory is short, eight nodes, joined
// by a byte permute.
enum : int { kInChunk = kWide ? 4 : 8 };
enum : int { kChunks = (kH + kInChunk - 1) / kInChunk };
enum : int { kSlots = kL < 8 ? 8 : kL };  // copies interleaved: every lane of a phase its own banks
enum : int { kHalfBytes = kChunks * kSlots * 16 };
enum : int { kRowBytes = 2 * kHalfBytes };
enum : u32 { kTableRows = 30 };  // codes 0..28 and one impossible row for all others
enum : u32 { kFloorWord = (static_cast<u32>(kWordFloor) & 0xffffu) * 0x10001u };

HMMJIT_DEVICE int clamped(int cost) { return cost < kWordClamp ? kWordClamp : cost; }

enum Cost : int { kEntryCost, kMmCost, kImCost, kDmCost, kMdCost, kDdCost, kIiCost, kCosts };
// Costs are staged where the emission table will be.
enum : int { kCostWords = kCosts * kH * kL };
static_assert(kCostWords * 4 <= static_cast<int>(kTableRows) * kRowBytes, "costs fit the table");

/// A cost into node `node`, 0-based: those leaving node - 1, except for the insert loop.
HMMJIT_DEVICE int node_cost(const WordFilterParams& p, int cost, int node) {
  const int before = node - 1;
  switch (cost) {
    case kEntryCost:
      return node < static_cast<int>(p.model_length)
                 ? word_transition(p, kWordEntry, node) + kWordShift
                 : static_cast<int>(kWordFloor);
    case kMmCost:
      return clamped(word_transition(p, kWordMmIn, node));
    case kImCost:
      return clamped(word_transition(p, kWordMiOut, before) + word_transition(p, kWordImIn, node));
    case kDmCost:
      return clamped(word_transition(p, kWordDmIn, node));
    case kMdCost:
      return clamped(word_transition(p, kWordMdOut, before));
    case kDdCost:
      return clamped(word_transition(p, kWordDdOut, before));
    default:
      return clamped(word_transition(p, kWordIiOut, node));
  }
}

/// One cost of a lane's nodes.
HMMJIT_DEVICE void load_costs(const u32* words, Cost cost, u32 lane, u32* costs) {
  HMMJIT_UNROLL
  for (int j = 0; j < kH; ++j) costs[j] = words[(cost * kH + j) * kL + static_cast<int>(lane)];
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, plan_constants::kBlocks)
    viterbi_wavefront(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  const int first_node = kTiled ? static_cast<int>(p.tile) * kTileNodes : 0;
  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u8* const base = table + ((group % (kL < 8 ? 8u / kL : 1u)) * kL + in_group) * 16;
  const bool first = in_group == 0;

  u32 mm[kH], im[kH], dm[kH], md[kH], dd[kH], ii[kH], entry[kH];
  {
    // [cost][word][lane][half]: a lane's low halves are its first kH nodes, the high ones follow.
    s16* const costs = reinterpret_cast<s16*>(table);
    for (int i = static_cast<int>(threadIdx.x); i < 2 * kCostWords;
         i += static_cast<int>(blockDim.x)) {
      const int j = i / (2 * kL) % kH;
      costs[i] =
          static_cast<s16>(node_cost(p, i / (2 * kL * kH), first_node + i % (2 * kL) * kH + j));
    }
    sync_block();
    const u32* const words = reinterpret_cast<const u32*>(table);
    load_costs(words, kEntryCost, in_group, entry);
    load_costs(words, kMmCost, in_group, mm);
    load_costs(words, kImCost, in_group, im);
    load_costs(words, kDmCost, in_group, dm);
    load_costs(words, kMdCost, in_group, md);
    load_costs(words, kDdCost, in_group, dd);
    load_costs(words, kIiCost, in_group, ii);
    sync_block();
  }
  {
    // [row][half][chunk][slot][16 bytes]
    u32* const words = reinterpret_cast<u32*>(table);
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(kTableRows) * kRowBytes / 4;
         i += static_cast<int>(blockDim.x)) {
      const int index = i % (kRowBytes / 4);
      const int half = index / (kHalfBytes / 4);
      const int first_of_lane = first_node + (index / 4 % kSlots % kL * 2 + half) * kH;
      const auto score = [&](int in_chunk) {
        const int j = index / (kSlots * 4) % kChunks * kInChunk + in_chunk;
        return j < kH ? clamped(word_emission(p, static_cast<u32>(i / (kRowBytes / 4)),
                                              first_of_lane + j))
                      : static_cast<int>(kWordClamp);
      };
      words[i] = kWide ? (static_cast<u32>(score(index % 4)) & 0xffffu) << (16 * half)
                       : pack_words(score(index % 4 * 2), score(index % 4 * 2 + 1));
    }
    sync_block();
  }

  for (;;) {
    u32 slot = 0;
    if (lane == 0) slot = atomic_add(&p.counters->next, plan_constants::kS);
    slot = shuffle(slot, 0);
    if (slot >= list_count(p.list)) break;
    slot += group;
    u32 length = 0;
    u64 start = 0;
    if (slot < list_count(p.list)) {
      const u32 target = list_target(p.list, slot);
      length = p.database.length[target];
      start = static_cast<u64>(p.database.start[target]) * kStartUnit;
    }
    const u8* const residues = p.database.residues + start;
    u32 steps = length;
    for (u32 o = kL; o < 32; o *= 2) steps = max_u32(steps, shuffle_xor(steps, o));
    steps += 2 * kL - 1;

    u32 m[kH], ins[kH], del[kH];
    HMMJIT_UNROLL
    for (int j = 0; j < kH; ++j) m[j] = ins[j] = del[j] = kFloorWord;
    u32 before_m = kFloorWord, before_i = kFloorWord, before_d = kFloorWord;
    u32 best = kFloorWord, best_odd = kFloorWord;
    const u8* high_row = base + (kTableRows - 1) * kRowBytes + kHalfBytes;
    u32 row = 0u - 2u * in_group;  // of the low half; the high half is one row later
    u32 now = kPaddingResidue * 0x01010101u, ahead = now;
    if (length > 0) ahead = load_word(residues);
    WordBoundary entering, entering_ahead;
    entering.match_insert = entering.deletion = kFloorWord;
    entering_ahead = entering;
    if constexpr (kTiled) {
      if (p.tile > 0 && first && length > 0) entering_ahead = p.boundary[start];
    }
    const u32 end_row = steps - 2u * in_group;
    for (; row != end_row; ++row) {
      if (row < length && row % 4u == 0) {
        now = ahead;
        if (row + 4 < length) ahead = load_word(residues + row + 4);
      }
      const u32 code = (now >> (8 * (row % 4u))) & 0xffu;
      const u32 x = row < length && code < kTableRows ? code : kTableRows - 1;
      const u8* const low_row = base + x * kRowBytes;

      // The neighbour's last node, on the row that this virtual lane processes now.
      u32 from_m = shuffle_up(m[kH - 1], 1), from_i = shuffle_up(ins[kH - 1], 1),
          from_d = shuffle_up(del[kH - 1], 1);
      if (first) from_m = from_i = from_d = kFloorWord;
      if constexpr (kTiled) {
        if (p.tile > 0 && first) {
          entering = entering_ahead;
          if (row + 1 < length) entering_ahead = p.boundary[start + row + 1];
          if (row < length) {
            from_m = entering.match_insert << 16;
            from_i = entering.match_insert;
            from_d = entering.deletion << 16;
          }
        }
      }
      const u32 in_m = byte_permute(from_m, m[kH - 1], 0x5432);
      const u32 in_i = byte_permute(from_i, ins[kH - 1], 0x5432);
      const u32 in_d = byte_permute(from_d, del[kH - 1], 0x5432);
      u32 left_m = in_m, left_d = in_d;
      // The next node's match state reads a node's old values before they are overwritten, so no value is copied.
      u32 open = add_max_s16x2(before_m, mm[0], entry[0]);
      open = add_max_s16x2(before_i, im[0], open);
      open = add_max_s16x2(before_d, dm[0], open);
      HMMJIT_UNROLL
      for (int c = 0; c < kChunks; ++c) {
        const Quad low = *reinterpret_cast<const Quad*>(low_row + c * kSlots * 16);
        const Quad high = *reinterpret_cast<const Quad*>(high_row + c * kSlots * 16);
        const u32 lows[4] = {low.x, low.y, low.z, low.w};
        const u32 highs[4] = {high.x, high.y, high.z, high.w};
        HMMJIT_UNROLL
        for (int k = 0; k < kInChunk; ++k) {
          const int j = c * kInChunk + k;
          if (j < kH) {
            const u32 v = open;
            if (j + 1 < kH) {
              const int next = j + 1 < kH ? j + 1 : j;
              open = add_max_s16x2(m[j], mm[next], entry[next]);
              open = add_max_s16x2(ins[j], im[next], open);
              open = add_max_s16x2(del[j], dm[next], open);
            }
            ins[j] = add_max_s16x2(ins[j], ii[j], m[j]);
            const u32 e = kWide ? joined(lows[k % 4], highs[k % 4])
                                : byte_permute(lows[k / 2], highs[k / 2], k % 2 ? 0x7632 : 0x5410);
            m[j] = add_max_s16x2(v, e, kFloorWord);
            const u32 d = add_max_s16x2(left_m, md[j], kFloorWord);
            del[j] = add_max_s16x2(left_d, dd[j], d);
            left_m = m[j];
            left_d = del[j];
            if (j % 4 == 1) best = max3_s16x2(best, m[j], m[j > 0 ? j - 1 : 0]);
            if (j % 4 == 3) best_odd = max3_s16x2(best_odd, m[j], m[j > 0 ? j - 1 : 0]);
            if (j % 2 == 0 && j == kH - 1) best = max_s16x2(best, m[j]);
          }
        }
      }
      high_row = low_row + kHalfBytes;
      before_m = in_m;
      before_i = in_i;
      before_d = in_d;
      if constexpr (kTiled) {
        const u32 done = row - 1;  // of the high half
        if (in_group == kL - 1 && done < length && p.tile + 1 < p.tile_count) {
          WordBoundary leaving;
          leaving.match_insert = byte_permute(m[kH - 1], ins[kH - 1], 0x7632);
          leaving.deletion = del[kH - 1] >> 16;
          p.boundary[start + done] = leaving;
        }
      }
    }

    best = max_s16x2(best, best_odd);
    const bool valid = slot < list_count(p.list);
    const u32 target = valid ? list_target(p.list, slot) : 0u;
    HMMJIT_UNROLL
    for (u32 o = kL / 2; o > 0; o /= 2) best = max_s16x2(best, shuffle_xor(best, o));
    int most = low_word(best) > high_word(best) ? low_word(best) : high_word(best);
    if (first && valid) {
      if constexpr (kTiled) {
        if (p.tile > 0) {
          const int other = low_word(p.results[slot]);
          most = most > other ? most : other;
        }
        if (p.tile + 1 < p.tile_count) {
          p.results[slot] = static_cast<u32>(most) & 0xffffu;
          continue;
        }
      }
      publish_speculated(p, slot, target, most - kWordShift);
    }
  }
}
