// MSV, a warp per sequence, striped (CUDAMPF, Jiang & Ganesan 2016; striping after Farrar 2007).
//
// As paper_designs/ssv/warp_striped.cu: a warp is one vector of 128 byte cells; cell c = 4*lane + byte holds node
// c*Q + q in word q; see common/striped.cuh for the place of the row. Every row ends with a butterfly over the warp
// for its best cell, from which J and B follow.
//
// kShared 1: costs of all symbols in shared memory (30 * kQ * 128 bytes). kShared 0: gathered byte
// by byte through the caches.
#include "common/byte_filter.cuh"
#include "common/striped.cuh"
#include "common/video.cuh"

namespace hmmjit_device {
namespace {

enum : bool { kShared = plan_constants::kShared != 0 };
enum : u32 { kTableRows = 30 };
enum : u32 { kCells = 128 };

HMMJIT_DEVICE u32 cost_word(const ByteFilterParams& p, u32 row, int lane, int q, int words) {
  u32 word = 0;
  HMMJIT_UNROLL
  for (int b = 0; b < 4; ++b) {
    const u32 node = static_cast<u32>((4 * lane + b) * words + q);
    const u32 cost = node < p.model_length ? p.costs[row * p.emission_stride + node] : 255u;
    word |= cost << (8 * b);
  }
  return word;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 1)
    msv_warp_striped(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  u32* const table = reinterpret_cast<u32*>(shared);
  const int words = striped_words(p.model_length, kCells);
  if constexpr (kShared) {
    const u32 row_words = static_cast<u32>(words) * 32;
    for (u32 i = threadIdx.x; i < kTableRows * row_words; i += blockDim.x) {
      table[i] = cost_word(p, i / row_words, static_cast<int>(i % 32),
                           static_cast<int>(i % row_words / 32), words);
    }
    sync_block();
  }
  const u32 lane = threadIdx.x % 32u;
  StripedRow row;
  if constexpr (kRowsShared) {
    row.open(table + ((kShared ? kTableRows : 0u) + threadIdx.x / 32u) * static_cast<u32>(words) * 32, lane);
  }
  const u32 bias = p.bias * 0x01010101u;
  const u32 count = msv_item_count(p);
  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(msv_work_counter(p), 1);
    index = shuffle(index, 0);
    if (index >= count) break;
    const WorkItem item = msv_item(p, index);
    const LengthClass length = p.classes[p.database.length_class[item.target]];
    const u8* const residues = p.database.residues + static_cast<u64>(item.start) * kStartUnit;
    MsvSpecials specials = msv_start(p, length);
    HMMJIT_UNROLL_BY(kUnrolled)
    for (int q = 0; q < words; ++q) row.set(q, 0);
    u32 best = 0, four = 0;
    for (u32 i = 0; i < item.rows; ++i) {
      four = i % 4 == 0 ? load_word(residues + i) : four >> 8;
      u32 x = four & 0xffu;
      x = x < kTableRows ? x : kTableRows - 1;
      const u32 begin = static_cast<u32>(specials.begin) * 0x01010101u;
      const u32 last = row.get(words - 1);
      const u32 below = shuffle_up(last, 1);
      u32 diagonal = byte_permute(lane == 0 ? 0u : below, last, 0x6543);
      u32 top = 0;
      HMMJIT_UNROLL_BY(kUnrolled)
      for (int q = 0; q < words; ++q) {
        const u32 cost = kShared
                             ? table[(x * static_cast<u32>(words) + static_cast<u32>(q)) * 32 + lane]
                             : cost_word(p, x, static_cast<int>(lane), q, words);
        const u32 value = msv_step_u8x4(diagonal, begin, bias, cost);
        diagonal = row.get(q);
        row.set(q, value);
        top = max_u8x4(top, value);
      }
      top = largest_byte(top);
      HMMJIT_UNROLL
      for (u32 o = 16; o > 0; o /= 2) top = max_u32(top, shuffle_xor(top, o));
      best = max_u32(best, top);
      if (best + p.bias >= 255u) break;  // the same in all lanes
      msv_raise(p, static_cast<int>(best), &specials);
    }
    if (lane == 0) publish(p, item.target, decide_msv(p, length, best));
  }
}
