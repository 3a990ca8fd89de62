// Count, sum and sum of squares of the intensities of each class. Integers, hence the same sums in
// whatever order threads add them.
#include "plan_constants.h"
#include "common/intrinsics.cuh"
#include "mrf/parameters.h"

namespace {

using namespace hmmjit_device;
using namespace mrf_device;
using namespace plan_constants;

constexpr int kWords = (kWidth + 3) / 4;
constexpr int kAllWords = kWords * kHeight * kDepth;
constexpr int kPitch = label_pitch(kWidth) / 4;  // in words, as the next
constexpr int kPlane = label_plane(kWidth, kHeight) / 4;

// Squares are below 2^24: a thread may add 2^8 of them in 32 bits.
static_assert(4 * kWordsPerThread <= 256, "32-bit sums would overflow");

HMMJIT_DEVICE void add_to(unsigned long long* total, u64 value) {
#ifdef HMMJIT_LOCKSTEP
  *total += value;
#else
  atomicAdd(total, value);
#endif
}

HMMJIT_DEVICE u32 sum_of_warp(u32 value) {
  HMMJIT_UNROLL
  for (u32 mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) mrf_statistics(StatisticsParameters p) {
  const int thread = static_cast<int>(threadIdx.x);
  u32 count[kClasses] = {}, sum[kClasses] = {}, squares[kClasses] = {};
  int index = static_cast<int>(blockIdx.x) * kThreads * kWordsPerThread + thread;
  for (int i = 0; i < kWordsPerThread; ++i, index += kThreads) {
    if (index >= kAllWords) break;
    const int x = index % kWords, y = index / kWords % kHeight, z = index / (kWords * kHeight);
    const u32 labels = reinterpret_cast<const u32*>(
        p.labels)[(z + 1) * kPlane + (y + 1) * kPitch + 1 + x];
    const Pair v = reinterpret_cast<const Pair*>(p.intensities)[index];
    HMMJIT_UNROLL
    for (int byte = 0; byte < 4; ++byte) {
      const u32 label = labels >> (8 * byte) & 255u;
      const u32 intensity = (byte < 2 ? v.x : v.y) >> (16 * (byte % 2)) & 0xffffu;
      HMMJIT_UNROLL
      for (int k = 0; k < kClasses; ++k) {
        if (label != static_cast<u32>(k)) continue;
        count[k] += 1;
        sum[k] += intensity;
        squares[k] += intensity * intensity;
      }
    }
  }
  HMMJIT_UNROLL
  for (int k = 0; k < kClasses; ++k) {
    // A warp's squares need 37 bits: two halves of 16, whose sums need 21 each.
    const u32 all = sum_of_warp(count[k]), total = sum_of_warp(sum[k]);
    const u32 low = sum_of_warp(squares[k] & 0xffffu), high = sum_of_warp(squares[k] >> 16);
    if (thread % 32 == 0 && all != 0) {
      add_to(&p.sums[k].count, all);
      add_to(&p.sums[k].sum, total);
      add_to(&p.sums[k].squares, (static_cast<u64>(high) << 16) + low);
    }
  }
}
