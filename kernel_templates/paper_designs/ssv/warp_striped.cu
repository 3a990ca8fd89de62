// SSV, a warp per sequence, striped (CUDAMPF, Jiang & Ganesan 2016; striping after Farrar 2007).
//
// A warp is one vector of 128 byte cells: lane l, byte b is vector cell c = 4*l + b. The model is split into 128
// stripes of kQ nodes; register q of a lane holds node c*kQ + q in byte b. So the step along the diagonal, from
// node k-1 to k, is a step from register q-1 to q; only q = 0 takes the last register moved up by one cell: a byte
// permute and one shuffle per row. See common/striped.cuh for the place of the row.
//
// Cells hold the SSV score above its floor, 0..127. The signed saturating addition limits sums to 127, which is a
// final overflow; the maximum with 0 is the floor.
//
// kShared 1: emission words of all 32 symbols in shared memory, laid out for conflict-free reads
// (32 * kQ * 128 bytes). kShared 0: gathered byte by byte through the caches, for models whose
// table no SM holds.
#include "common/byte_filter.cuh"
#include "common/striped.cuh"
#include "common/video.cuh"

namespace hmmjit_device {
namespace {

enum : bool { kShared = plan_constants::kShared != 0 };
enum : int { kCells = 128 };

/// Emissions of symbol `row` for register q of a lane, four signed bytes.
HMMJIT_DEVICE u32 emission_word(const ByteFilterParams& p, u32 row, int lane, int q, int words) {
  u32 word = 0;
  HMMJIT_UNROLL
  for (int b = 0; b < 4; ++b) {
    const u32 node = static_cast<u32>((4 * lane + b) * words + q);
    const int e = node < p.model_length ? p.emissions[row * p.emission_stride + node] : -127;
    word |= (static_cast<u32>(e) & 0xffu) << (8 * b);
  }
  return word;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 1)
    ssv_warp_striped(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  u32* const table = reinterpret_cast<u32*>(shared);
  const int words = striped_words(p.model_length, kCells);
  if constexpr (kShared) {
    for (int i = static_cast<int>(threadIdx.x); i < kSymbolRows * words * 32;
         i += static_cast<int>(blockDim.x)) {
      table[i] = emission_word(p, static_cast<u32>(i / (words * 32)), i % 32, (i / 32) % words, words);
    }
    sync_block();
  }

  const u32 lane = threadIdx.x % 32u;
  StripedRow row;
  if constexpr (kRowsShared) {
    row.open(table + ((kShared ? static_cast<u32>(kSymbolRows) : 0u) + threadIdx.x / 32u) * static_cast<u32>(words) * 32, lane);
  }
  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(&p.counters->next, 1);
    index = shuffle(index, 0);
    if (index >= p.item_count) break;
    const WorkItem item = p.items[index];
    const u8* const residues = p.database.residues + static_cast<u64>(item.start) * kStartUnit;

    HMMJIT_UNROLL_BY(kUnrolled)
    for (int q = 0; q < words; ++q) row.set(q, 0);
    u32 best = 0;
    u32 four = 0;  // residues i .. i+3, the same in every lane
    for (u32 i = 0; i < item.rows; ++i) {
      four = i % 4 == 0 ? load_word(residues + i) : four >> 8;
      const u32 x = four & 0xffu;
      const u32 last = row.get(words - 1);
      const u32 below = shuffle_up(last, 1);
      // Cell c takes cell c-1; the first cell of the model takes 0.
      u32 diagonal = byte_permute(lane == 0 ? 0u : below, last, 0x6543);
      int gather_lane = static_cast<int>(lane);
#ifndef HMMJIT_LOCKSTEP
      // Recomputed in every row: otherwise the compiler keeps all 4 * kQ addresses in registers.
      if constexpr (!kShared) asm volatile("" : "+r"(gather_lane));
#endif
      HMMJIT_UNROLL_BY(kUnrolled)
      for (int q = 0; q < words; ++q) {
        const u32 e = kShared ? table[(x * static_cast<u32>(words) + static_cast<u32>(q)) * 32 + lane]
                              : emission_word(p, x, gather_lane, q, words);
        const u32 value = max_s8x4(add_saturate_s8x4(diagonal, e), 0);
        diagonal = row.get(q);
        row.set(q, value);
        best = max_s8x4(best, value);
      }
    }

    u32 top = max_u32(max_u32(best & 0xffu, (best >> 8) & 0xffu),
                      max_u32((best >> 16) & 0xffu, best >> 24));
    HMMJIT_UNROLL
    for (u32 o = 16; o > 0; o /= 2) top = max_u32(top, shuffle_xor(top, o));
    if (lane == 0) finish_ssv(p, item, top);
  }
}
