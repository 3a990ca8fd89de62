// One colour of one iterated-conditional-modes sweep (Besag 1986): every voxel of the colour takes
// the class of least energy, data term plus beta times (out-class minus in-class neighbours).
//
// A thread owns four voxels along x, one word of labels, and marches through kTileZ steps in z.
// Neighbours of a voxel never have its colour (6 neighbours: parity of x+y+z; 26: parities of x, y
// and z), so that the result does not depend on the order of threads and volumes are updated in
// place. A word that a neighbouring thread writes meanwhile may be read old or new: the two differ
// in bytes of this launch's colour only, which the reader does not use.
#include "plan_constants.h"
#include "common/intrinsics.cuh"
#include "mrf/parameters.h"

namespace {

using namespace hmmjit_device;
using namespace mrf_device;
using namespace plan_constants;

constexpr int kWords = (kWidth + 3) / 4;
constexpr int kPitch = label_pitch(kWidth) / 4;  // in words, as the next
constexpr int kPlane = label_plane(kWidth, kHeight) / 4;
constexpr int kStep = kNeighbours == 6 ? 1 : 2;  // rows and planes between those of one colour
constexpr int kRows = (kHeight + kStep - 1) / kStep;
constexpr int kPlanes = (kDepth + kStep - 1) / kStep;
constexpr int kBlocksX = (kWords + kTileX - 1) / kTileX;
constexpr int kBlocksY = (kRows + kTileY - 1) / kTileY;

// Neighbours are counted for all classes at once, in bit fields of one number; border voxels count
// in the field after the last class.
constexpr int kFieldBits = kNeighbours == 6 ? 3 : 5;
template <bool kNarrow> struct FieldsOf { typedef u32 Type; };
template <> struct FieldsOf<false> { typedef u64 Type; };
typedef FieldsOf<(kClasses + 1) * kFieldBits <= 32>::Type Fields;
constexpr u32 kFieldMask = (1u << kFieldBits) - 1;

HMMJIT_DEVICE u32 high_product(u32 a, u32 b) {
#ifdef HMMJIT_LOCKSTEP
  return static_cast<u32>((static_cast<u64>(a) * b) >> 32);
#else
  return __umulhi(a, b);
#endif
}

HMMJIT_DEVICE Fields field(u32 word, int byte) {
  return static_cast<Fields>(1) << (kFieldBits * ((word >> (8 * byte)) & 255u));
}

/// The neighbours of bytes 0 and 2 of a word whose words in the six directions these are.
struct Counts {
  Fields a = 0, b = 0;
  HMMJIT_DEVICE void add(u32 word) {
    a += field(word, 0);
    b += field(word, 2);
  }
};

HMMJIT_DEVICE u32 least_energy(const UpdateParameters& p, u32 intensity, Fields in_class) {
  int best = 0x7fffffff;
  u32 label = 0;
  HMMJIT_UNROLL
  for (int k = 0; k < kClasses; ++k) {
    const int distance = static_cast<int>(intensity) * kMeanScale - p.classes[k].mean;
    const u32 square = static_cast<u32>(distance) * static_cast<u32>(distance);
    u32 data = high_product(square, p.classes[k].weight);
    if (data > kMaxDataEnergy) data = kMaxDataEnergy;
    // out-class - in-class = neighbours - 2 in-class, and the neighbours are the same for all k.
    const int like = static_cast<int>(static_cast<u32>(in_class >> (kFieldBits * k)) & kFieldMask);
    const int energy = static_cast<int>(data) + p.classes[k].offset - 2 * p.beta * like;
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
  const int row = block / kBlocksX % kBlocksY * kTileY + thread / kTileX;
  const int first_plane = block / (kBlocksX * kBlocksY) * kTileZ;

  u32 changed = 0;
  if (column < kWords && row < kRows) {
    const int y = kStep * row + (kStep == 1 ? 0 : static_cast<int>(p.colour >> 1 & 1));
    const int z0 = kStep * first_plane + (kStep == 1 ? 0 : static_cast<int>(p.colour >> 2));
    const int planes = kPlanes - first_plane < kTileZ ? kPlanes - first_plane : kTileZ;
    u32* word = reinterpret_cast<u32*>(p.labels) + (z0 + 1) * kPlane + (y + 1) * kPitch + 1 + column;
    u32 below = word[-kPlane], here = word[0];
    for (int step = 0; step < planes; ++step, word += kStep * kPlane) {
      const int z = z0 + kStep * step;
      if (kStep > 1 && (y >= kHeight || z >= kDepth)) break;
      // Bytes of the colour: `first` and the two that follow.
      const u32 first = kStep == 1 ? (p.colour + static_cast<u32>(y + z)) & 1u : p.colour & 1u;
      const u32 shift = 8 * first;
      Counts counts;
      u32 above = 0;
      if constexpr (kStep == 1) {
        above = word[kPlane];
        counts.add((here << 8 | word[-1] >> 24) >> shift);
        counts.add((here >> 8 | word[1] << 24) >> shift);
        counts.add(word[-kPitch] >> shift);
        counts.add(word[kPitch] >> shift);
        counts.add(below >> shift);
        counts.add(above >> shift);
      } else {
        here = word[0];
        HMMJIT_UNROLL
        for (int dz = -1; dz <= 1; ++dz) {
          HMMJIT_UNROLL
          for (int dy = -1; dy <= 1; ++dy) {
            const u32* other = word + dz * kPlane + dy * kPitch;
            const u32 middle = other[0];
            counts.add((middle << 8 | other[-1] >> 24) >> shift);
            counts.add((middle >> 8 | other[1] << 24) >> shift);
            if (dz != 0 || dy != 0) counts.add(middle >> shift);
          }
        }
      }
      const Pair v = reinterpret_cast<const Pair*>(p.intensities)[(z * kHeight + y) * kWords + column];
      const u32 shift_v = 16 * first;
      u32 fresh = here;
      const int x = 4 * column + static_cast<int>(first);
      if (kWidth % 4 == 0 || x < kWidth) {
        const u32 label = least_energy(p, v.x >> shift_v & 0xffffu, counts.a);
        fresh = (fresh & ~(255u << shift)) | label << shift;
      }
      if (kWidth % 4 == 0 || x + 2 < kWidth) {
        const u32 label = least_energy(p, v.y >> shift_v & 0xffffu, counts.b);
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
