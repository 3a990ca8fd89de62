// SSV, S = 1 ... 128 sequences per warp in the form of CUDAMPF++ (Jiang, Ganesan & Yao 2017): see
// common/sequence_groups.cuh. ssv/multi_lane.cu was developed from it.
//
// Cells hold the SSV score above its floor, 0..127, as in paper_designs/ssv/warp_striped.cu.
#include "common/sequence_groups.cuh"

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 1)
    ssv_sequence_groups(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  for (u32 i = threadIdx.x; i < kGroupTableRows * kGroupRowBytes; i += blockDim.x) {
    const u32 row = i / kGroupRowBytes, node = group_node(i % kGroupRowBytes);
    const int e = node < p.model_length ? p.emissions[row * p.emission_stride + node] : -127;
    table[i] = static_cast<u8>(e & 0xff);
  }
  sync_block();

  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(&p.counters->next, kS);
    index = shuffle(index, 0);
    if (index >= p.item_count) break;
    index += group * kP;
    GroupResidues residues;
    u32 most = 0;
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) {
      WorkItem item;
      item.start = item.rows = 0;
      if (index + s < p.item_count) item = p.items[index + s];
      residues.open(s, p, item.start, item.rows);
      most = max_u32(most, residues.rows[s]);
    }
    for (u32 o = kL; o < 32; o *= 2) most = max_u32(most, shuffle_xor(most, o));

    u32 cells[kH];
    HMMJIT_UNROLL
    for (int h = 0; h < kH; ++h) cells[h] = 0;
    u32 best = 0;
    for (u32 i = 0; i < most; ++i) {
      if (i % 4 == 0) residues.fetch(i);
      u32 offsets[kP];
      HMMJIT_UNROLL
      for (int s = 0; s < kP; ++s) offsets[s] = residues.next_row(s);
      u32 diagonal = group_moved_up(cells[kH - 1], lane, in_group);
      HMMJIT_UNROLL
      for (int h = 0; h < kH; h += kP) {
        u32 e[kP];
        group_emissions(table, offsets, in_group, h, e);
        HMMJIT_UNROLL
        for (int k = 0; k < kP; ++k) {
          const u32 value = max_s8x4(add_saturate_s8x4(diagonal, e[k]), 0);
          diagonal = cells[h + k];
          cells[h + k] = value;
          best = max_s8x4(best, value);
        }
      }
    }
    u32 bests[kP];
    group_largest(best, bests);
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) {
      if (in_group == 0 && index + s < p.item_count) finish_ssv(p, p.items[index + s], bests[s]);
    }
  }
}
