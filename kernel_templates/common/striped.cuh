// The striped designs of CUDAMPF (Jiang & Ganesan 2016): the place of a warp's DP row, and whether the loop over
// its words is unrolled.
//
// A static kernel reads Q, the words of a row, from the model at run time and loops over them: its row, indexed by
// a variable, is in local memory (or, on request, in shared memory). A kernel specialised for Q unrolls the loop,
// which puts the row into registers (or into shared memory with constant offsets). kQ is Q, or the capacity of a
// static kernel.
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

  /// `place`: 32 words of this warp per word of the row, if rows are in shared memory.
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

/// Words per row of this model, with `cells` per vector.
HMMJIT_DEVICE int striped_words(u32 model_length, u32 cells) {
  return kStatic ? static_cast<int>((model_length + cells - 1) / cells) : kQ;
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_STRIPED_CUH_
