// MSV, a thread per sequence, two rows per pass with B speculated (Li, Chen & Sun 2012).
//
// A thread keeps its DP row in local memory, which the hardware interleaves by thread, so that the
// accesses of a warp coalesce as in the rows-interleaved global arrays of Walters et al. (2009).
// Memory traffic of that row is the bound; two rows are therefore computed in one pass over it. The
// second needs B after the first, which depends on the whole first row; it is speculated to be
// unchanged, which holds unless the first row's best exceeds max(base, J) + tec. A sequence whose
// speculation fails is scored again, one row per pass.
//
// kWords: words of four cells, at least M/4. Costs are read through the read-only caches, four
// nodes at a time. kSpeculate 0: one row per pass for all, which is Walters et al.'s design.
#include "common/byte_filter.cuh"
#include "common/video.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : u32 { kWords = plan_constants::kWords };
enum : bool { kSpeculate = plan_constants::kSpeculate != 0 };

HMMJIT_DEVICE u32 cost_word(const ByteFilterParams& p, u32 x, u32 w) {
  // The stride is a multiple of 16, and cells between M and the stride are impossible.
  return 4 * w < p.emission_stride ? load_word(p.costs + x * p.emission_stride + 4 * w)
                                   : 0xffffffffu;
}

HMMJIT_DEVICE u32 shifted(u32 word, u32 below) { return byte_permute(below, word, 0x6543); }

/// The largest cell of the target, or ~0 if `speculate` and B should have changed between two rows of one pass.
/// `row` is left dirty.
HMMJIT_DEVICE u32 score(const ByteFilterParams& p, const WorkItem& item, const LengthClass& length,
                        u32* row, bool speculate) {
  const u8* const residues = p.database.residues + static_cast<u64>(item.start) * kStartUnit;
  const u32 bias = p.bias * 0x01010101u;
  MsvSpecials specials = msv_start(p, length);
  u32 best = 0;
  for (u32 w = 0; w < kWords; ++w) row[w] = 0;
  u32 i = 0;
  while (i < item.rows) {
    const u32 begin = static_cast<u32>(specials.begin) * 0x01010101u;
    const u32 x1 = residues[i];
    u32 below = 0, best1 = 0;
    if (speculate && i + 1 < item.rows) {
      const u32 x2 = residues[i + 1];
      u32 below1 = 0, best2 = 0;
      for (u32 w = 0; w < kWords; ++w) {
        const u32 old = row[w];
        const u32 first = msv_step_u8x4(shifted(old, below), begin, bias, cost_word(p, x1, w));
        const u32 second = msv_step_u8x4(shifted(first, below1), begin, bias, cost_word(p, x2, w));
        below = old;
        below1 = first;
        best1 = max_u8x4(best1, first);
        best2 = max_u8x4(best2, second);
        row[w] = second;
      }
      best1 = largest_byte(best1);
      if (static_cast<int>(best1) > specials.limit) return ~0u;
      best = max_u32(best, max_u32(best1, largest_byte(best2)));
      i += 2;
    } else {
      for (u32 w = 0; w < kWords; ++w) {
        const u32 old = row[w];
        const u32 value = msv_step_u8x4(shifted(old, below), begin, bias, cost_word(p, x1, w));
        below = old;
        best1 = max_u8x4(best1, value);
        row[w] = value;
      }
      best = max_u32(best, largest_byte(best1));
      ++i;
    }
    if (best + p.bias >= 255u) break;  // final overflow
    msv_raise(p, static_cast<int>(best), &specials);
  }
  return best;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    msv_thread_speculative(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  u32 row[kWords];
  const u32 count = msv_item_count(p);
  for (;;) {
    const u32 index = atomic_add(msv_work_counter(p), 1);
    if (index >= count) break;
    const WorkItem item = msv_item(p, index);
    const LengthClass length = p.classes[p.database.length_class[item.target]];
    u32 best = ~0u;
    if constexpr (kSpeculate) best = score(p, item, length, row, true);
    if (best == ~0u) best = score(p, item, length, row, false);
    publish(p, item.target, decide_msv(p, length, best));
  }
}
