// Residues of one target, packed five bits each and six to a word (Jiang & Ganesan 2015): a warp fetches 192 at a
// time, each lane packs six, and a shuffle distributes the current one.
#ifndef HMMJIT_KERNEL_PACKED_RESIDUES_CUH_
#define HMMJIT_KERNEL_PACKED_RESIDUES_CUH_

#include "common/intrinsics.cuh"

namespace hmmjit_device {

enum : u32 { kPackedTableRows = 30 };  // codes 0..28 and one impossible row for all others

struct PackedResidues {
  enum : u32 { kInWord = 6 };
  const u8* residues;
  u32 length;
  u32 packed;

  HMMJIT_DEVICE void open(const u8* first, u32 count) {
    residues = first;
    length = count;
    packed = 0;
  }
  /// Table row of residue i, called by the whole warp for 0, 1, 2, ... below `length` in turn.
  HMMJIT_DEVICE u32 row(u32 i, u32 lane) {
    const u32 in_fetch = i % (32 * kInWord);
    if (in_fetch == 0) {
      packed = 0;
      const u32 first = i + lane * kInWord;
      for (u32 k = 0; k < kInWord; ++k) {
        const u32 x = first + k < length ? residues[first + k] & 31u
                                         : static_cast<u32>(kPaddingResidue);
        packed |= x << (5 * k);
      }
    }
    const u32 x = (shuffle(packed, in_fetch / kInWord) >> (5 * (in_fetch % kInWord))) & 31u;
    return x < kPackedTableRows ? x : kPackedTableRows - 1;
  }
};

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_PACKED_RESIDUES_CUH_
