// The striped designs of CUDAMPF (Jiang & Ganesan 2016): where a warp keeps the DP row, and whether
// the loop over a row's words is unrolled.
//
// A static kernel takes Q, the words of a row, from the model at run time and loops over them: its
// row, indexed by a variable, lies in local memory (or, asked for, in shared memory). A kernel
// specialised for Q unrolls the loop, which puts the row into registers (or shared memory with
// constant offsets). kQ is Q, or the most a static kernel can hold.
#ifndef HMMJIT_KERNEL_STRIPED_CUH_
#define HMMJIT_KERNEL_STRIPED_CUH_

#include "common/intrinsics.cuh"
#include "plan_constants.h"

namespace hmmjit_device {

enum : int { kQ = plan_constants::kQ };
enum : bool { kRowsShared = plan_constants::kRows != 0 };
enum : bool { kStatic = plan_constants::kStatic != 0 };
enum : int { kUnrolled = kStatic ? 1 : kQ };

/// kRows words of a DP row for each lane.
struct StripedRow {
  u32 own[kRowsShared ? 1 : kQ];
  u32* shared;

  /// `place`: 32 words per word of the row, of this warp, when rows are in shared memory.
  HMMJIT_DEVICE void open(u32* place, u32 lane) { shared = place + lane; }
  HMMJIT_DEVICE u32 get(int q) const {
    if constexpr (kRowsShared) return shared[q * 32];
    else return own[q];
  }
  HMMJIT_DEVICE void set(int q, u32 value) {
    if constexpr (kRowsShared) shared[q * 32] = value;
    else own[q] = value;
  }
};

/// Words of a row of this model, `cells` to a vector.
HMMJIT_DEVICE int striped_words(u32 model_length, u32 cells) {
  return kStatic ? static_cast<int>((model_length + cells - 1) / cells) : kQ;
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_STRIPED_CUH_
