// MSV, the full recurrence with the J state, S sequences per warp (CUDAMPF++, Jiang, Ganesan & Yao 2017), cells as
// 16-bit values, two per word.
//
//   M(i,k) = max(max(M(i-1,k-1), B) + bias - rb_k(x_i), 0)
//   B      = max(base, J) - move,  J = max over rows of the best cell - tec
//
// No saturation at 255 is needed: a cell that reaches 255 - bias is a final overflow, and below that no sum
// saturates.
//
// B is the same for all cells of a row and depends on the best cell of the previous row. But it changes only if the
// best cell so far exceeds max(base, J) + tec, so each lane compares its running maximum with that limit and the
// warp votes; only then do the lanes of a sequence combine their maxima (after the speculation of Li et al. 2012,
// but checked every row and therefore exact).
//
// Layout and cells as in ssv/multi_lane.cu: lane l owns nodes l*2*kH .., half b of word j is node
// l*2*kH + b*kH + j.
#include "common/byte_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kL = plan_constants::kL };
enum : int { kH = plan_constants::kH };
static_assert(plan_constants::kS * kL == 32, "a warp holds S sequences of L lanes");
enum : bool {
  kQuadFetch =
      plan_constants::kS * (plan_constants::kThreads / 32) * plan_constants::kBlocks >= kManySequences
};

// Rows unrolled together: a row of many words hides its own overhead, and compile time grows with the unrolled
// body.
enum : int { kRowsUnrolled = kH >= 40 ? 1 : kH >= 20 ? 2 : 4 };

enum : int { kChunks = (kH + 3) / 4 };
enum : int { kSlots = kL < 8 ? 8 : kL };  // interleaved copies: every lane of a phase its own banks
enum : int { kChunkBytes = 16 * kSlots };
enum : int { kRowBytes = kChunks * kChunkBytes };
// Codes 0..28 and one impossible row for all others, so that M = 3591 just fits into an SM's memory.
enum : u32 { kTableRows = 30 };

HMMJIT_DEVICE u32 emission_code(const ByteFilterParams& p, u32 row, int node) {
  const int cost = node < static_cast<int>(p.model_length)
                       ? p.costs[row * p.emission_stride + static_cast<u32>(node)]
                       : 255;
  const int e = static_cast<int>(p.bias) - cost;
  return e < 0 ? 0x8000u | static_cast<u32>(-e) : static_cast<u32>(e);
}
HMMJIT_DEVICE u32 emission_word(const ByteFilterParams& p, u32 row, int lane, int word) {
  const int node = lane * 2 * kH + word;
  return emission_code(p, row, node) | (emission_code(p, row, node + kH) << 16);
}

HMMJIT_DEVICE u32 step(u32 diagonal, u32 begin, u32 e) {
  return add_relu_half2(max_s16x2(diagonal, begin), e);
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, plan_constants::kBlocks)
    msv_multi_lane(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  u32* const words = reinterpret_cast<u32*>(table);
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(kTableRows) * kRowBytes / 4;
       i += static_cast<int>(blockDim.x)) {
    const int index = i % (kRowBytes / 4);
    const int word = index / (kChunkBytes / 4) * 4 + index % 4;
    words[i] = word < kH ? emission_word(p, static_cast<u32>(i / (kRowBytes / 4)),
                                         index % (kChunkBytes / 4) / 4 % kL, word)
                         : 0u;
  }
  sync_block();

  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u8* const base = table + ((group % (kL < 8 ? 8u / kL : 1u)) * kL + in_group) * 16;
  const u32 below = (lane & ~static_cast<u32>(kL - 1)) | ((in_group + kL - 1) & (kL - 1));
  const bool first = in_group == 0;
  const u32 select = first ? 0x54bbu : 0x5432u;  // the first lane's first node has no predecessor
  const u32 count = msv_item_count(p);

  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(msv_work_counter(p), plan_constants::kS);
    index = shuffle(index, 0);
    if (index >= count) break;
    index += group;
    const bool valid = index < count;
    WorkItem item;
    item.start = item.rows = item.target = 0;
    item.split = kWholeTarget;
    if (valid) item = msv_item(p, index);
    const LengthClass length = p.classes[p.database.length_class[item.target]];
    MsvSpecials specials = msv_start(p, length);
    u32 begin = static_cast<u32>(specials.begin) * 0x10001u;
    ResidueStream<kQuadFetch> residues;
    residues.open(p, item);
    const u32 own = (item.rows + 3) / 4;
    u32 most = own;
    for (u32 o = kL; o < 32; o *= 2) most = max_u32(most, shuffle_xor(most, o));

    u32 v[kH];
    HMMJIT_UNROLL
    for (int r = 0; r < kH; ++r) v[r] = 0;
    u32 best = 0;
    for (u32 i = 0; i < most; ++i) {
      const u32 current = residues.word(i);
      HMMJIT_UNROLL_BY(kRowsUnrolled)
      for (int q = 0; q < 4; ++q) {
        u32 x = (current >> (8 * q)) & 0xffu;
        x = x < kTableRows ? x : kTableRows - 1;
        const u8* const row = base + x * kRowBytes;
        const u32 last = v[kH - 1];
        u32 in = last << 16;
        if constexpr (kL > 1) in = byte_permute(shuffle(last, below), last, select);
        HMMJIT_UNROLL
        for (int c = kChunks - 1; c >= 0; --c) {
          const Quad quad = *reinterpret_cast<const Quad*>(row + c * kChunkBytes);
          const u32 e[4] = {quad.x, quad.y, quad.z, quad.w};
          HMMJIT_UNROLL
          for (int k = 3; k >= 0; --k) {
            const int r = c * 4 + k;
            if (r < kH) v[r] = step(r > 0 ? v[r > 0 ? r - 1 : 0] : in, begin, e[k]);
          }
          HMMJIT_UNROLL
          for (int k = 0; k < 4; k += 2) {
            const int r = c * 4 + k;
            if (r + 1 < kH) best = max3_s16x2(best, v[r], v[r + 1 < kH ? r + 1 : r]);
            else if (r < kH) best = max_s16x2(best, v[r]);
          }
        }
        // A packed comparison with the limit would need both halves anyway.
        const int mine = static_cast<int>(max_u32(best >> 16, best & 0xffffu));
        if (warp_ballot(mine > specials.limit) != 0) {
          u32 whole = static_cast<u32>(mine);
          HMMJIT_UNROLL
          for (u32 o = kL / 2; o > 0; o /= 2) whole = max_u32(whole, shuffle_xor(whole, o));
          msv_raise(p, static_cast<int>(whole), &specials);
          begin = static_cast<u32>(specials.begin) * 0x10001u;
        }
      }
    }
    u32 whole = max_u32(best >> 16, best & 0xffffu);
    HMMJIT_UNROLL
    for (u32 o = kL / 2; o > 0; o /= 2) whole = max_u32(whole, shuffle_xor(whole, o));
    if (first && valid) publish(p, item.target, decide_msv(p, length, whole));
  }
}
