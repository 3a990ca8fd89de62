// MSV, a warp per sequence, DP row in shared memory (Jiang & Ganesan 2015, warp-synchronous).
//
// A warp processes a row in steps of 128 nodes, four byte cells per lane. The row is double-buffered: the previous
// row stays readable until the whole row is done, and no lane waits for another within a row. Residues are packed,
// see common/packed_residues.cuh. Costs come from shared memory or, if the table does not fit next to the rows,
// from global memory through the caches (kShared).
//
// kWords: words of four cells per row, a multiple of 32.
#include "common/byte_filter.cuh"
#include "common/packed_residues.cuh"
#include "common/video.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : u32 { kWords = plan_constants::kWords };
enum : u32 { kTableRows = kPackedTableRows };
enum : bool { kShared = plan_constants::kShared != 0 };
static_assert(kWords % 32 == 0, "whole steps of a warp");

HMMJIT_DEVICE u32 cost_word(const ByteFilterParams& p, u32 x, u32 w) {
  return 4 * w < p.emission_stride ? load_word(p.costs + x * p.emission_stride + 4 * w)
                                   : 0xffffffffu;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    msv_warp_sync(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  u32* const table = reinterpret_cast<u32*>(shared);
  constexpr u32 kTableWords = kShared ? kTableRows * kWords : 0;
  if constexpr (kShared) {
    for (u32 i = threadIdx.x; i < kTableWords; i += blockDim.x) {
      table[i] = cost_word(p, i / kWords, i % kWords);
    }
    sync_block();
  }
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  // Two rows of this warp; word 0 of each stands for the nodes before the first and stays 0.
  u32* const rows = table + kTableWords + warp * 2 * (kWords + 1);
  const u32 bias = p.bias * 0x01010101u;
  const u32 count = msv_item_count(p);

  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(msv_work_counter(p), 1);
    index = shuffle(index, 0);
    if (index >= count) break;
    const WorkItem item = msv_item(p, index);
    const LengthClass length = p.classes[p.database.length_class[item.target]];
    PackedResidues residues;
    residues.open(p.database.residues + static_cast<u64>(item.start) * kStartUnit, item.rows);
    MsvSpecials specials = msv_start(p, length);
    for (u32 w = lane; w < 2 * (kWords + 1); w += 32) rows[w] = 0;
    sync_warp();
    u32 best = 0;
    const u32* before = rows;
    u32* after = rows + kWords + 1;
    for (u32 i = 0; i < item.rows; ++i) {
      const u32 x = residues.row(i, lane);
      const u32 begin = static_cast<u32>(specials.begin) * 0x01010101u;
      u32 top = 0;
      for (u32 w = lane; w < kWords; w += 32) {
        const u32 diagonal = byte_permute(before[w], before[w + 1], 0x6543);
        const u32 value = msv_step_u8x4(diagonal, begin, bias,
                                        kShared ? table[x * kWords + w] : cost_word(p, x, w));
        after[w + 1] = value;
        top = max_u8x4(top, value);
      }
      top = largest_byte(top);
      HMMJIT_UNROLL
      for (u32 o = 16; o > 0; o /= 2) top = max_u32(top, shuffle_xor(top, o));
      best = max_u32(best, top);
      if (best + p.bias >= 255u) break;  // the same in all lanes
      msv_raise(p, static_cast<int>(best), &specials);
      sync_warp();
      u32* const swap = const_cast<u32*>(before);
      before = after;
      after = swap;
    }
    if (lane == 0) publish(p, item.target, decide_msv(p, length, best));
    sync_warp();
  }
}
