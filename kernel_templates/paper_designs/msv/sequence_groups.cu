// MSV, S = 1 ... 128 sequences per warp in the form of CUDAMPF++ (Jiang, Ganesan & Yao 2017): see
// common/sequence_groups.cuh. msv/multi_lane.cu was developed from it.
//
// Every row ends with a butterfly over the lanes of a sequence for its best cell, from which J and
// B follow.
#include "common/sequence_groups.cuh"

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, 1)
    msv_sequence_groups(const hmmjit_device::ByteFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  for (u32 i = threadIdx.x; i < kGroupTableRows * kGroupRowBytes; i += blockDim.x) {
    const u32 row = i / kGroupRowBytes, node = group_node(i % kGroupRowBytes);
    table[i] = node < p.model_length ? p.costs[row * p.emission_stride + node] : u8{255};
  }
  sync_block();

  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u32 bias = p.bias * 0x01010101u;
  const u32 count = msv_item_count(p);
  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomic_add(msv_work_counter(p), kS);
    index = shuffle(index, 0);
    if (index >= count) break;
    index += group * kP;
    GroupResidues residues;
    u32 targets[kP], begins[kP], bests[kP];
    MsvSpecials specials[kP];
    u32 most = 0;
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) {
      WorkItem item;
      item.start = item.rows = item.target = 0;
      if (index + s < count) item = msv_item(p, index + s);
      targets[s] = item.target;
      residues.open(s, p, item.start, item.rows);
      specials[s] = msv_start(p, p.classes[p.database.length_class[item.target]]);
      begins[s] = static_cast<u32>(specials[s].begin);
      bests[s] = 0;
      most = max_u32(most, item.rows);
    }
    for (u32 o = kL; o < 32; o *= 2) most = max_u32(most, shuffle_xor(most, o));

    u32 cells[kH];
    HMMJIT_UNROLL
    for (int h = 0; h < kH; ++h) cells[h] = 0;
    for (u32 i = 0; i < most; ++i) {
      if (i % 4 == 0) residues.fetch(i);
      u32 offsets[kP];
      HMMJIT_UNROLL
      for (int s = 0; s < kP; ++s) offsets[s] = residues.next_row(s);
      const u32 begin = group_broadcast(begins);
      u32 diagonal = group_moved_up(cells[kH - 1], lane, in_group);
      u32 top = 0;
      HMMJIT_UNROLL
      for (int h = 0; h < kH; h += kP) {
        u32 e[kP];
        group_emissions(table, offsets, in_group, h, e);
        HMMJIT_UNROLL
        for (int k = 0; k < kP; ++k) {
          const u32 value = msv_step_u8x4(diagonal, begin, bias, e[k]);
          diagonal = cells[h + k];
          cells[h + k] = value;
          top = max_u8x4(top, value);
        }
      }
      u32 tops[kP];
      group_largest(top, tops);
      HMMJIT_UNROLL
      for (int s = 0; s < kP; ++s) {
        bests[s] = max_u32(bests[s], tops[s]);
        msv_raise(p, static_cast<int>(bests[s]), &specials[s]);
        begins[s] = static_cast<u32>(specials[s].begin);
      }
    }
    HMMJIT_UNROLL
    for (int s = 0; s < kP; ++s) {
      if (in_group != 0 || index + s >= count) continue;
      publish(p, targets[s],
              decide_msv(p, p.classes[p.database.length_class[targets[s]]], bests[s]));
    }
  }
}
