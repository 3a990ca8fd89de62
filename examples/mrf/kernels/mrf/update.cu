// One colour of a sweep of iterated conditional modes (Besag 1986): every voxel of the colour gets
// the class with the least energy: data term plus beta times (neighbours of other classes -
// neighbours of this class).
//
// A thread owns four voxels along x, one word of labels, and marches through kTileZ planes. The six
// neighbours of a voxel never have its colour, so threads may run in any order and update volumes
// in place. A thread may read a word while another thread writes it: old and new state differ only
// in bytes of this colour, which the reader does not use.
#include "common/intrinsics.cuh"
#include "mrf/parameters.h"
#include "plan_constants.h"

namespace {

using namespace hmmjit_device;
using namespace mrf_device;
using namespace plan_constants;

constexpr int kWords = (kWidth + 3) / 4;
constexpr int kPitch = label_pitch(kWidth) / 4;  // in words, as kPlane
constexpr int kPlane = label_plane(kWidth, kHeight) / 4;
constexpr int kBlocksX = (kWords + kTileX - 1) / kTileX;
constexpr int kBlocksY = (kHeight + kTileY - 1) / kTileY;

HMMJIT_DEVICE u32 high_product(u32 a, u32 b) {
#ifdef HMMJIT_LOCKSTEP
  return static_cast<u32>((static_cast<u64>(a) * b) >> 32);
#else
  return __umulhi(a, b);
#endif
}

/// Counts of the neighbours of bytes 0 and 2 of a word, for all classes at once: three bits per
/// class, the last three for the border.
struct Counts {
  u32 a = 0, b = 0;
  HMMJIT_DEVICE void add(u32 word) {
    a += 1u << (3 * (word & 255u));
    b += 1u << (3 * (word >> 16 & 255u));
  }
};

HMMJIT_DEVICE u32 least_energy(const UpdateParameters& p, u32 intensity, u32 in_class) {
  int best = 0x7fffffff;
  u32 label = 0;
  HMMJIT_UNROLL
  for (int k = 0; k < kClasses; ++k) {
    const int distance = static_cast<int>(intensity) * kMeanScale - p.classes[k].mean;
    const u32 square = static_cast<u32>(distance) * static_cast<u32>(distance);
    u32 data = high_product(square, p.classes[k].weight);
    if (data > kMaxDataEnergy) data = kMaxDataEnergy;
    // other - same = 6 - 2 same; 6 is common to all classes.
    const int same = static_cast<int>(in_class >> (3 * k) & 7u);
    const int energy = static_cast<int>(data) + p.classes[k].offset - 2 * p.beta * same;
    if (energy < best) {
      best = energy;
      label = static_cast<u32>(k);
    }
  }
  return label;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kTileX* kTileY) mrf_update(UpdateParameters p) {
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int column = block % kBlocksX * kTileX + thread % kTileX;
  const int y = block / kBlocksX % kBlocksY * kTileY + thread / kTileX;
  const int first_z = block / (kBlocksX * kBlocksY) * kTileZ;

  u32 changed = 0;
  if (column < kWords && y < kHeight) {
    u32* word =
        reinterpret_cast<u32*>(p.labels) + (first_z + 1) * kPlane + (y + 1) * kPitch + 1 + column;
    u32 below = word[-kPlane], here = word[0];
    for (int z = first_z; z < kDepth && z < first_z + kTileZ; ++z, word += kPlane) {
      const u32 first =
          (p.colour + static_cast<u32>(y + z)) & 1u;  // updates bytes `first` and `first` + 2
      const u32 shift = 8 * first;
      const u32 above = word[kPlane];
      Counts counts;
      counts.add((here << 8 | word[-1] >> 24) >> shift);
      counts.add((here >> 8 | word[1] << 24) >> shift);
      counts.add(word[-kPitch] >> shift);
      counts.add(word[kPitch] >> shift);
      counts.add(below >> shift);
      counts.add(above >> shift);
      const Pair v =
          reinterpret_cast<const Pair*>(p.intensities)[(z * kHeight + y) * kWords + column];
      u32 fresh = here;
      const int x = 4 * column + static_cast<int>(first);
      if (kWidth % 4 == 0 || x < kWidth) {
        const u32 label = least_energy(p, v.x >> (16 * first) & 0xffffu, counts.a);
        fresh = (fresh & ~(255u << shift)) | label << shift;
      }
      if (kWidth % 4 == 0 || x + 2 < kWidth) {
        const u32 label = least_energy(p, v.y >> (16 * first) & 0xffffu, counts.b);
        fresh = (fresh & ~(0xff0000u << shift)) | label << (shift + 16);
      }
      if (fresh != here) {
        word[0] = fresh;
        const u32 difference = fresh ^ here;
        changed += ((difference & 0xffffu) != 0) + ((difference >> 16) != 0);
      }
      below = here;
      here = above;
    }
  }
  HMMJIT_UNROLL
  for (u32 mask = 16; mask > 0; mask /= 2) changed += shuffle_xor(changed, mask);
  if (thread % 32 == 0 && changed != 0) atomic_add(p.changed, changed);
}
