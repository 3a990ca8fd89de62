// The sequence groups of CUDAMPF++ (Jiang, Ganesan & Yao 2017) in the paper's own form: a warp
// scores S sequences, S = 1, 2, 4, ... 128, each by W = 128/S byte cells of the warp's vector, in H
// striped words of SIMD video operations.
//
// Up to S = 32 a sequence has L = 32/S lanes of four cells. For S = 64 and 128 a lane holds P = 2 or 4 sequences,
// with two cells or one cell of every word. Cell c of a sequence holds node c*H + h in word h: the step along the
// diagonal is a step from word to word; only word 0 takes the last word moved up by one cell. The rows of the
// emission table hold the W cells of each word h once; lanes with several sequences gather their words from several
// rows.
#ifndef HMMJIT_KERNEL_SEQUENCE_GROUPS_CUH_
#define HMMJIT_KERNEL_SEQUENCE_GROUPS_CUH_

#include "common/byte_filter.cuh"
#include "common/video.cuh"
#include "plan_constants.h"

namespace hmmjit_device {

enum : int { kS = plan_constants::kS };
enum : int { kL = kS < 32 ? 32 / kS : 1 };  // lanes of a sequence
enum : int { kP = kS < 32 ? 1 : kS / 32 };  // sequences of a lane
enum : int { kH = plan_constants::kH };
enum : int { kW = 128 / kS };
static_assert(kW * kS == 128 && (kP == 1 || kH % kP == 0), "sequences divide the warp's cells");

enum : u32 { kGroupTableRows = 30 };  // codes 0..28 and one impossible row for all others
enum : u32 { kGroupRowBytes = static_cast<u32>(kH) * kW };

/// Maps byte `index` of an emission row to its node; the cells of a word are contiguous.
HMMJIT_DEVICE u32 group_node(u32 index) {
  return index % kW * static_cast<u32>(kH) + index / kW;
}

/// The residues of a lane's sequences.
struct GroupResidues {
  const u8* residues[kP];
  u32 rows[kP];
  u32 four[kP];

  HMMJIT_DEVICE void open(int s, const ByteFilterParams& p, u32 start, u32 count) {
    residues[s] = p.database.residues + static_cast<u64>(start) * kStartUnit;
    rows[s] = count;
    four[s] = 0;
  }
  /// Fetches residues i .. i+3 of every sequence, padding after the end.
  HMMJIT_DEVICE void fetch(u32 i) {
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) {
      four[s] = i < rows[s] ? load_word(residues[s] + i) : kPaddingResidue * 0x01010101u;
    }
  }
  /// Offset of the table row of the next residue of sequence s.
  HMMJIT_DEVICE u32 next_row(int s) {
    u32 x = four[s] & 0xffu;
    four[s] >>= 8;
    x = x < kGroupTableRows ? x : kGroupTableRows - 1;
    return x * kGroupRowBytes;
  }
};

/// Emission words h .. h+kP-1, from the rows at `offsets` of the lane's sequences.
HMMJIT_DEVICE void group_emissions(const u8* table, const u32* offsets, u32 in_group, int h,
                                   u32* e) {
  if constexpr (kP == 1) {
    e[0] = load_word(table + offsets[0] + (static_cast<u32>(h) * kL + in_group) * 4);
  } else {
    u32 own[kP];
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) own[s] = load_word(table + offsets[s] + static_cast<u32>(h) * kW);
    if constexpr (kP == 2) {
      e[0] = byte_permute(own[0], own[1], 0x5410);
      e[1] = byte_permute(own[0], own[1], 0x7632);
    } else {
      const u32 low01 = byte_permute(own[0], own[1], 0x5140);
      const u32 low23 = byte_permute(own[2], own[3], 0x5140);
      const u32 high01 = byte_permute(own[0], own[1], 0x7362);
      const u32 high23 = byte_permute(own[2], own[3], 0x7362);
      e[0] = byte_permute(low01, low23, 0x5410);
      e[1] = byte_permute(low01, low23, 0x7632);
      e[2] = byte_permute(high01, high23, 0x5410);
      e[3] = byte_permute(high01, high23, 0x7632);
    }
  }
}

/// Every cell takes the value of the previous cell in its sequence; first cells take 0.
HMMJIT_DEVICE u32 group_moved_up(u32 word, u32 lane, u32 in_group) {
  if constexpr (kP == 4) return 0;
  if constexpr (kP == 2) return byte_permute(word, 0, 0x2404);
  if constexpr (kL == 1) return word << 8;
  const u32 below = shuffle(word, lane == 0 ? 0 : lane - 1);
  return byte_permute(in_group == 0 ? 0u : below, word, 0x6543);
}

/// The largest cell of each of the lane's sequences.
HMMJIT_DEVICE void group_largest(u32 word, u32* best) {
  if constexpr (kP == 1) {
    best[0] = largest_byte(word);
    HMMJIT_UNROLL
    for (u32 o = kL / 2; o > 0; o /= 2) best[0] = max_u32(best[0], shuffle_xor(best[0], o));
  } else if constexpr (kP == 2) {
    best[0] = max_u32(word & 0xffu, (word >> 8) & 0xffu);
    best[1] = max_u32((word >> 16) & 0xffu, word >> 24);
  } else {
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) best[s] = (word >> (8 * s)) & 0xffu;
  }
}

/// Broadcasts `value` of each sequence to all of its cells.
HMMJIT_DEVICE u32 group_broadcast(const u32* value) {
  if constexpr (kP == 1) return value[0] * 0x01010101u;
  if constexpr (kP == 2) return value[0] * 0x0101u | value[1] * 0x01010000u;
  u32 word = 0;
  HMMJIT_UNROLL
  for (int s = 0; s < kP; ++s) word |= value[s] << (8 * s);
  return word;
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_SEQUENCE_GROUPS_CUH_
