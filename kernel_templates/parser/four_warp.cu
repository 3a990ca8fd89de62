// parser/four_lane.cu for long models: one target per block (common/four_warp.cuh).
#include "common/four_warp.cuh"
#include "common/region_decoding.cuh"

extern "C" __global__ void __launch_bounds__(128, plan_constants::kBlocks)
    parser_four_warp(const hmmjit_device::DomainBatch batch) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const BlockShare share = block_share(batch);
  const DomainParams& p = *share.model;
  if (share.block >= p.most_parsers) return;  // no workspace is left for it
  const Place t = make_place(p, shared);
  BlockItems items(t, p.target_count, &p.counters->next_target, &p.arena->parser_units);
  Space space;
  for (;;) {
    const u32 slot = items.take(false);
    if (slot >= p.target_count) break;
    const u32 target = p.targets[slot];
    Residues residues;
    residues.length = p.database.length[target];
    residues.first = p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    const u32 units = parser_units(residues.length);
    if (residues.length == 0 || residues.length > p.most_cells / (4u * p.stripes) || !fits(p, units)) continue;
    if (!items.reserve(p, units, &space)) {
      if (space.units == 0) break;  // other warps have the workspace
      continue;
    }
    SpecialRow* const forward =
        reinterpret_cast<SpecialRow*>(p.workspace + static_cast<u64>(space.first) * kWorkspaceUnit);
    SpecialRow* const backward = forward + (residues.length + 1);
    const FloatLength lengths = p.multihit[p.database.length_class[target]];
    const float last_c = forward_pass(t, residues, lengths, multihit(), forward,
                                      [](u32, const RunCells&, float) {});
    const bool own_scale = backward_pass(t, residues, lengths, multihit(), forward, backward, [](u32) {},
                                         [](u32, const RunCells&) {});
    if (threadIdx.x == 0) {
      ParsedTarget* const out = p.parsed + slot;
      out->last_c = last_c;
      decode(p, target, residues.length, lengths.loop, own_scale, forward, backward, out);
    }
  }
}
