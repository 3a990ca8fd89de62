// Forward and Backward over whole targets, posterior decoding of the begins and ends of domains, and the resulting
// regions (Eddy 2011): the first step of the CPU's domain stage for a target that passed the filters, to the bit
// (common/four_lane.cuh). kTargets of them per warp, four lanes each; cells in shared memory, special states in the
// workspace. The warps of a block share the odds of their model.
#include "common/region_decoding.cuh"

extern "C" __global__ void __launch_bounds__(32 * plan_constants::kWarps, 1)
    parser_four_lane(const hmmjit_device::DomainBatch batch) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const BlockShare share = block_share(batch);
  const DomainParams p = *share.model;
  const u32 count = p.target_count;
  float* const odds = reinterpret_cast<float*>(shared);
  load_odds(p, odds);
  ItemShare mine(share, count, p.most_parsers);
  if (!share.works() || !mine.begins()) return;
  const Stripes s = make_stripes(
      p, odds, odds + block_floats(p.stripes) + threadIdx.x / 32u * parser_warp_floats(p.stripes, kTargets));
  const u32 lane = threadIdx.x % 32u, group = lane_target();
  Space space;
  for (;;) {
    u32 slot = mine.take(&p.counters->next_target);
    if (slot >= count) break;
    slot += group;
    bool valid = group < mine.items() && slot < count;
    const u32 target = valid ? p.targets[slot] : 0u;
    const u32 L = valid ? p.database.length[target] : 0u;
    if (valid && s.place == 0) p.parsed[slot].status = kLeftToHost;
    valid = valid && L > 0 && L <= p.most_cells / (4u * p.stripes);
    u32 units = valid ? parser_units(L) : 0u;
    if (!fits(p, units)) valid = false;
    if (!valid) units = 0;
    const bool asked = warp_ballot(valid);
    valid = reserve(p, &p.arena->parser_units, units, &space) && valid;
    Residues residues;
    residues.length = valid ? L : 0u;
    const u32 rows = longest(residues);
    if (rows == 0) {
      if (asked && !warp_ballot(space.units > 0)) break;  // other warps have the workspace
      continue;
    }
    const u32 length = residues.length;
    SpecialRow* const forward =
        reinterpret_cast<SpecialRow*>(p.workspace + static_cast<u64>(space.first) * kWorkspaceUnit);
    SpecialRow* const backward = forward + (length + 1);
    residues.first = p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    const FloatLength lengths = p.multihit[p.database.length_class[target]];

    if (lane < kRowLanes) {
      const float last_c = forward_pass(p, s, residues, rows, lengths, multihit(), forward,
                                        [](u32, float) {});
      const bool own_scale = backward_pass(p, s, residues, rows, lengths, multihit(), forward,
                                           backward, [](u32) {}, [](u32) {});
      if (valid && s.place == 0) {
        ParsedTarget* const out = p.parsed + slot;
        out->last_c = last_c;
        decode(p, target, length, lengths.loop, own_scale, forward, backward, out);
      }
    }
    sync_warp();
  }
}
