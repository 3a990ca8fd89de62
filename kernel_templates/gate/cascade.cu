// The gate after the bias filter, Viterbi or Forward: a thread per target of the stage's list.
#include "common/gate.cuh"
#include "plan_constants.h"

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    gate_cascade(const hmmjit_device::GateParams p) {
  using namespace hmmjit_device;
  const u32 count = p.list.count ? *p.list.count : p.list.fixed_count;
  u32 residues = 0;
  for (u32 slot = blockIdx.x * blockDim.x + threadIdx.x; slot < count;
       slot += gridDim.x * blockDim.x) {
    residues += gate_slot(p, slot);
  }
  for (u32 o = 1; o < 32; o *= 2) residues += shuffle_xor(residues, o);
  if (threadIdx.x % 32u == 0 && residues > 0) atomic_add(&p.counters->residues[p.stage], residues);
}
