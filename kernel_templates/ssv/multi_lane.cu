// SSV, S sequences per warp (CUDAMPF++, Jiang, Ganesan & Yao 2017), with byte cells, 16-bit cells, or both.
//
// L = 32/S lanes score one sequence. The model is cut into a byte segment, kHb words of four cells
// per lane, followed by a 16-bit segment, kHh words of two cells per lane; either may be empty.
// Within a segment lane l owns consecutive nodes, and byte b of word j is node l*4*kHb + b*kHb + j
// (16-bit: l*2*kHh + b*kHh + j). Words are updated in place in descending order, so that the step
// along the diagonal, from node k-1 to k, is a change of register name; only a lane's first word
// takes its value through a permute, from the lane below.
//
// Byte cells: v in 0..127 is the SSV score above its floor. w = v + (e + 128) cannot carry into
// the next byte unless v + e > 127; a word holds one sequence only, and a sequence with such a
// cell has already shown a value >= 127 - bias, where the answer is "overflow" whatever follows.
// The top bit of w says whether v + e >= 0. The running maximum is kept for odd bytes in one
// accumulator of two 16-bit maxima and for even bytes, moved up by a multiplication, in another.
//
// 16-bit cells are half-precision subnormals, whose bit pattern is the integer itself (exact to 2047),
// and added on the multiply-add pipe. A byte enters the 16-bit segment unchanged.
//
// Emission rows of all 32 symbols are in shared memory, 16 bytes per lane and load; a remaining word is loaded
// alone. For L < 8 the table is replicated and interleaved, so that the lanes of one shared-memory phase always
// access different banks, whatever their residues.
//
// kScan: also gives the largest value of each block of rows, for scans of long targets.
//
// kTiled: the model is longer than kL*kW nodes. One launch per tile; `boundary` passes the last node's value of
// every row to the next tile's first node, `tile_best` the best value.
#include "common/byte_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kL = plan_constants::kL };    // lanes per sequence
enum : int { kHb = plan_constants::kHb };  // byte words per lane
enum : int { kHh = plan_constants::kHh };  // 16-bit words per lane
enum : bool { kTiled = plan_constants::kTiled != 0 };
enum : bool { kScan = plan_constants::kScan != 0 };
enum : int { kS = plan_constants::kS };
static_assert(kS * kL == 32, "a warp holds S sequences of L lanes");
static_assert(kHb + kHh > 0, "an empty model");
enum : bool {
  kQuadFetch =
      kS * (plan_constants::kThreads / 32) * plan_constants::kBlocks >= kManySequences
};

// Rows unrolled together: a row of many words hides its own overhead, and compile time grows with the unrolled
// body.
enum : int { kRowsUnrolled = kHb + kHh > 80 ? 1 : kHb + kHh > 40 ? 2 : 4 };

// A segment's share of one emission row: full 16-byte chunks, then 0, 1 or 2 single words. Three remaining words
// take a chunk with one word unused: one load instead of two.
template <int kWords>
struct Segment {
  enum : int { kChunks = kWords / 4 + (kWords % 4 == 3 ? 1 : 0) };
  enum : int { kPair = kWords % 4 == 2 ? 1 : 0 };
  enum : int { kSingle = kWords % 4 == 1 ? 1 : 0 };
  enum : int { kSlots16 = kL < 8 ? 8 : kL };  // lanes with data of their own, x 16 bytes
  enum : int { kSlots8 = kL < 16 ? 16 : kL };
  enum : int { kChunkBytes = 16 * kSlots16 };
  enum : int { kPairOffset = kChunks * kChunkBytes };
  enum : int { kSingleOffset = kPairOffset + kPair * 8 * kSlots8 };
  enum : int { kBytes = kSingleOffset + kSingle * 4 * 32 };
};
using ByteSegment = Segment<kHb>;
using HalfSegment = Segment<kHh>;
enum : int { kRowBytes = ByteSegment::kBytes + HalfSegment::kBytes };
static_assert(kRowBytes % 128 == 0, "rows start at bank 0");
enum : int { kTileNodes = kL * (4 * kHb + 2 * kHh) };

/// Maps the 32-bit word at `index` of a segment's row to its lane and word; word = -1: unused.
template <int kWords>
HMMJIT_DEVICE void locate(int index, int* lane, int* word) {
  using Seg = Segment<kWords>;
  if (index < Seg::kPairOffset / 4) {
    const int chunk = index / (Seg::kChunkBytes / 4), in_chunk = index % (Seg::kChunkBytes / 4);
    *lane = (in_chunk / 4) % kL;
    *word = chunk * 4 + in_chunk % 4;
  } else if (index < Seg::kSingleOffset / 4) {
    const int in_pair = index - Seg::kPairOffset / 4;
    *lane = (in_pair / 2) % kL;
    *word = kWords - 2 + in_pair % 2;
  } else {
    *lane = (index - Seg::kSingleOffset / 4) % kL;
    *word = kWords - 1;
  }
  if (*word >= kWords) *word = -1;
}

HMMJIT_DEVICE int emission(const ByteFilterParams& p, int row, int node) {
  return node < static_cast<int>(p.model_length)
             ? p.emissions[static_cast<u32>(row) * p.emission_stride + static_cast<u32>(node)]
             : -127;
}

HMMJIT_DEVICE u32 half_code(int e) {
  return e < 0 ? 0x8000u | static_cast<u32>(-e) : static_cast<u32>(e);
}

HMMJIT_DEVICE void fill_table(const ByteFilterParams& p, u8* table) {
  const int first = kTiled ? static_cast<int>(p.tile) * kTileNodes : 0;
  u32* words = reinterpret_cast<u32*>(table);
  for (int i = static_cast<int>(threadIdx.x); i < kSymbolRows * kRowBytes / 4;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / (kRowBytes / 4), index = i % (kRowBytes / 4);
    int lane = 0, word = -1;
    u32 value = 0;
    if (index < ByteSegment::kBytes / 4) {
      locate<kHb>(index, &lane, &word);
      const int node = first + lane * 4 * kHb + word;
      if (word >= 0) {
        for (int b = 0; b < 4; ++b) {
          value |= static_cast<u32>(emission(p, row, node + b * kHb) + 128) << (8 * b);
        }
      }
    } else {
      locate<kHh>(index - ByteSegment::kBytes / 4, &lane, &word);
      const int node = first + kL * 4 * kHb + lane * 2 * kHh + word;
      if (word >= 0) {
        value = half_code(emission(p, row, node)) | (half_code(emission(p, row, node + kHh)) << 16);
      }
    }
    words[i] = value;
  }
}

struct Cells {
  u32 byte[kHb > 0 ? kHb : 1];
  u32 half[kHh > 0 ? kHh : 1];
  u32 best_odd, best_even, best_half;
};

/// The largest value of a sequence since the cells' maxima were cleared, in all of its lanes.
HMMJIT_DEVICE u32 largest(const Cells& c) {
  const u32 bytes = max_u16x2(c.best_odd, c.best_even);
  u32 best = max_u32(bytes >> 24, (bytes >> 8) & 0xffu);
  best = max_u32(best, max_u32(c.best_half >> 16, c.best_half & 0xffffu));
  HMMJIT_UNROLL
  for (u32 o = kL / 2; o > 0; o /= 2) best = max_u32(best, shuffle_xor(best, o));
  return best;
}

HMMJIT_DEVICE u32 step_byte(u32 diagonal, u32 e) { return clear_negative_bytes(diagonal + e); }
HMMJIT_DEVICE u32 step_half(u32 diagonal, u32 e) { return add_relu_half2(diagonal, e); }

// Unrolled by hand: unrolling loops in the compiler's front end would dominate compile time.

/// Words kFirst .. kFirst+kCount-1 of the byte segment, descending.
template <int kFirst, int kCount>
HMMJIT_DEVICE void advance_bytes(Cells& c, u32 in, const Quad& e) {
  u32* const v = c.byte + kFirst;
  if constexpr (kCount > 3) v[3] = step_byte(v[2], e.w);
  if constexpr (kCount > 2) v[2] = step_byte(v[1], e.z);
  if constexpr (kCount > 1) v[1] = step_byte(v[0], e.y);
  if constexpr (kFirst > 0) in = v[-1];
  v[0] = step_byte(in, e.x);
  if constexpr (kCount > 1) {
    c.best_odd = max3_u16x2(c.best_odd, v[0], v[1]);
    c.best_even = max3_u16x2(c.best_even, times256(v[0]), times256(v[1]));
  }
  if constexpr (kCount > 3) {
    c.best_odd = max3_u16x2(c.best_odd, v[2], v[3]);
    c.best_even = max3_u16x2(c.best_even, times256(v[2]), times256(v[3]));
  }
  if constexpr (kCount % 2 == 1) {
    c.best_odd = max_u16x2(c.best_odd, v[kCount - 1]);
    c.best_even = max_u16x2(c.best_even, times256(v[kCount - 1]));
  }
}

template <int kFirst, int kCount>
HMMJIT_DEVICE void advance_halves(Cells& c, u32 in, const Quad& e) {
  u32* const v = c.half + kFirst;
  if constexpr (kCount > 3) v[3] = step_half(v[2], e.w);
  if constexpr (kCount > 2) v[2] = step_half(v[1], e.z);
  if constexpr (kCount > 1) v[1] = step_half(v[0], e.y);
  if constexpr (kFirst > 0) in = v[-1];
  v[0] = step_half(in, e.x);
  if constexpr (kCount > 1) c.best_half = max3_s16x2(c.best_half, v[0], v[1]);
  if constexpr (kCount > 3) c.best_half = max3_s16x2(c.best_half, v[2], v[3]);
  if constexpr (kCount % 2 == 1) c.best_half = max_s16x2(c.best_half, v[kCount - 1]);
}

/// Chunk kChunk of the byte segment, then that of the 16-bit segment: they load different pipes.
template <int kChunk>
HMMJIT_DEVICE void advance_chunk(Cells& c, u32 in_byte, u32 in_half, const u8* row16) {
  if constexpr (kChunk < ByteSegment::kChunks) {
    advance_bytes<kChunk * 4, (kHb - kChunk * 4 < 4 ? kHb - kChunk * 4 : 4)>(
        c, in_byte, load_quad(row16 + kChunk * ByteSegment::kChunkBytes));
  }
  if constexpr (kChunk < HalfSegment::kChunks) {
    advance_halves<kChunk * 4, (kHh - kChunk * 4 < 4 ? kHh - kChunk * 4 : 4)>(
        c, in_half, load_quad(row16 + ByteSegment::kBytes + kChunk * HalfSegment::kChunkBytes));
  }
}

template <int... kIndex>
struct Chunks {
  static HMMJIT_DEVICE void advance(Cells& c, u32 in_byte, u32 in_half, const u8* row16) {
    (advance_chunk<kIndex>(c, in_byte, in_half, row16), ...);
  }
};
/// Chunks<kCount - 1, ..., 1, 0>.
template <int kCount, int... kIndex>
struct ChunksDown : ChunksDown<kCount - 1, kIndex..., kCount - 1> {};
template <int... kIndex>
struct ChunksDown<0, kIndex...> : Chunks<kIndex...> {};

enum : int {
  kMostChunks =
      ByteSegment::kChunks > HalfSegment::kChunks ? ByteSegment::kChunks : HalfSegment::kChunks
};

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, plan_constants::kBlocks)
    ssv_multi_lane(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  fill_table(p, table);
  sync_block();

  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u32 slot16 = (group % (kL < 8 ? 8u / kL : 1u)) * kL + in_group;
  const u32 slot8 = (group % (kL < 16 ? 16u / kL : 1u)) * kL + in_group;
  const u8* const base16 = table + slot16 * 16;
  const int to8 = static_cast<int>(slot8 * 8) - static_cast<int>(slot16 * 16);
  const int to4 = static_cast<int>(lane * 4) - static_cast<int>(slot16 * 16);
  // The lane below; the group's last lane feeds its first, whose permute selectors turn the byte into zero
  // (replicating the sign of a cell, never negative) or into the 16-bit segment's input.
  const u32 below = (lane & ~static_cast<u32>(kL - 1)) | ((in_group + kL - 1) & (kL - 1));
  const bool first = in_group == 0;
  const u32 select_byte = kHh > 0 ? (first ? 0x654au : 0x6542u) : (first ? 0x654bu : 0x6543u);
  const u32 select_half = kHb > 0 ? (first ? 0x54a2u : 0x5410u) : (first ? 0x54bbu : 0x5432u);

  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(&p.counters->next, kS);
    index = shuffle(index, 0);
    if (index >= p.item_count) break;
    index += group;
    WorkItem item;
    item.start = item.rows = item.target = 0;
    item.split = kWholeTarget;
    const bool valid = index < p.item_count;
    if (valid) item = p.items[index];
    ResidueStream<kQuadFetch, kScan> residues;
    residues.open(p, item);
    const u32 own = (item.rows + 3) / 4;
    u32 most = own;  // the longest item; shorter ones run on padding
    for (u32 o = kL; o < 32; o *= 2) most = max_u32(most, shuffle_xor(most, o));

    Cells c{};
    u32 best_of_blocks = 0;
    u8* const boundary = kTiled ? p.boundary + static_cast<u64>(item.start) * kStartUnit : nullptr;
    u32 entering = 0;  // last node's values of the previous tile: the previous row, and these four
    for (u32 i = 0; i < most; ++i) {
      const u32 current = residues.word(i);
      u32 before = 0, leaving = 0;
      if (kTiled && p.tile > 0 && first && i < own) before = load_word(boundary + 4 * i);
      HMMJIT_UNROLL_BY(kRowsUnrolled)
      for (int q = 0; q < 4; ++q) {
        const u32 x = (current >> (8 * q)) & 0xffu;
        const u8* const row16 = base16 + x * kRowBytes;
        u32 in_byte = 0, in_half = 0;
        const u32 last_byte = c.byte[kHb > 0 ? kHb - 1 : 0];
        const u32 last_half = c.half[kHh > 0 ? kHh - 1 : 0];
        if constexpr (kL == 1) {
          if constexpr (kHb > 0) in_byte = times256(last_byte);
          if constexpr (kHb > 0 && kHh > 0) in_half = byte_permute(last_byte, last_half, 0x54b3);
          if constexpr (kHb == 0) in_half = last_half << 16;
        } else if constexpr (kHb > 0 && kHh > 0) {
          const u32 up = shuffle(byte_permute(last_byte, last_half, 0x3376), below);
          in_byte = byte_permute(up, last_byte, select_byte);
          in_half = byte_permute(up, last_half, select_half);
        } else if constexpr (kHb > 0) {
          in_byte = byte_permute(shuffle(last_byte, below), last_byte, select_byte);
        } else {
          in_half = byte_permute(shuffle(last_half, below), last_half, select_half);
        }
        if constexpr (kTiled) {
          const u32 inject = first ? (q == 0 ? entering : (before >> (8 * (q - 1)))) & 0xffu : 0u;
          if constexpr (kHb > 0)
            in_byte |= inject;
          else
            in_half |= inject;
        }

        if constexpr (ByteSegment::kSingle) {
          Quad e;
          e.x = load_word(row16 + to4 + ByteSegment::kSingleOffset);
          advance_bytes<(kHb > 0 ? kHb - 1 : 0), 1>(c, in_byte, e);
        }
        if constexpr (ByteSegment::kPair) {
          const Pair e2 = *reinterpret_cast<const Pair*>(row16 + to8 + ByteSegment::kPairOffset);
          Quad e;
          e.x = e2.x;
          e.y = e2.y;
          advance_bytes<(kHb > 1 ? kHb - 2 : 0), 2>(c, in_byte, e);
        }
        if constexpr (HalfSegment::kSingle) {
          Quad e;
          e.x = load_word(row16 + to4 + ByteSegment::kBytes + HalfSegment::kSingleOffset);
          advance_halves<(kHh > 0 ? kHh - 1 : 0), 1>(c, in_half, e);
        }
        if constexpr (HalfSegment::kPair) {
          const Pair e2 = *reinterpret_cast<const Pair*>(row16 + to8 + ByteSegment::kBytes +
                                                         HalfSegment::kPairOffset);
          Quad e;
          e.x = e2.x;
          e.y = e2.y;
          advance_halves<(kHh > 1 ? kHh - 2 : 0), 2>(c, in_half, e);
        }
        if constexpr (kMostChunks > 0) {
          ChunksDown<kMostChunks>::advance(c, in_byte, in_half, row16);
        }
        if constexpr (kTiled) {
          const u32 end =
              kHh > 0 ? c.half[kHh > 0 ? kHh - 1 : 0] >> 16 : c.byte[kHb > 0 ? kHb - 1 : 0] >> 24;
          leaving |= (end & 0x7fu) << (8 * q);
        }
      }
      if constexpr (kTiled) {
        entering = before >> 24;
        // The reading lane takes these four rows' values before the writing lane overwrites them.
        sync_warp();
        if (in_group == kL - 1 && i < own) *reinterpret_cast<u32*>(boundary + 4 * i) = leaving;
        sync_warp();
      }
      if constexpr (kScan) {
        enum : u32 { kWords = kBlockRows / 4 };
        if (i % kWords == kWords - 1) {
          const u32 block = i / kWords, best = largest(c);
          best_of_blocks = max_u32(best_of_blocks, best);
          c.best_odd = c.best_even = c.best_half = 0;
          if (p.block_best && first && i < own && block >= item.split)
            p.block_best[item.target + block] = static_cast<u8>(best > 255u ? 255u : best);
        }
      }
    }

    u32 best = max_u32(best_of_blocks, largest(c));
    if (first && valid && !(kScan && p.block_best)) {
      if constexpr (kTiled) {
        if (p.tile > 0) best = max_u32(best, p.tile_best[index]);
        p.tile_best[index] = best;
        if (p.tile + 1 < p.tile_count) continue;
      }
      finish_ssv(p, item, best);
    }
  }
}
