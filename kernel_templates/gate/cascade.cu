// The gate after the bias filter, Viterbi or Forward: a thread per target of the stage's list.
#include "common/gate.cuh"
#include "plan_constants.h"

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    gate_cascade(const hmmjit_device::GateParams p) {
  using namespace hmmjit_device;
  const u32 count = p.list.count ? *p.list.count : p.list.fixed_count;
  for (u32 slot = blockIdx.x * blockDim.x + threadIdx.x; slot < count;
       slot += gridDim.x * blockDim.x) {
    gate_slot(p, slot);
  }
}
