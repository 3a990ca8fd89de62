// Forward score row by row, S sequences per warp or several warps per sequence.
//
// Lane v of a sequence owns H consecutive nodes, cells and odds in registers. The delete chain D(k+1) = M(k) MD_k +
// D(k) DD_k is affine in a lane's inflow, with the same factor in every row: a prefix scan of one value per lane,
// whose multipliers are computed once, yields each lane's inflow. The end score is affine in it, too, so it needs
// no second pass over the cells. With several warps a single barrier per row suffices: each warp publishes its
// outflow without inflow, and every warp combines these by the known factors.
//
// The order of summation differs from HMMER's and multiply-adds are fused, so the score differs by rounding
// (layout::forward_guard states the band within which the CPU decides). Insert states are stored without their M->I
// odds, which are applied on leaving.
#include "common/float_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : int { kL = plan_constants::kL };
enum : int { kH = plan_constants::kH };
enum : int { kWarps = plan_constants::kWarps };          // per sequence
enum : bool { kShared = plan_constants::kShared != 0 };  // emissions
static_assert(plan_constants::kS * kL == 32 && (kWarps == 1 || kL == 32), "shape");
static_assert(kWarps == 1 || plan_constants::kThreads == 32 * kWarps, "a block per sequence");

enum : int { kChunks = (kH + 3) / 4 };
enum : int { kSlots = kWarps * (kL < 8 ? 8 : kL) };  // interleaved copies against bank conflicts
enum : int { kRowBytes = kChunks * kSlots * 16 };
enum : u32 { kTableRows = 30 };
enum : int { kTableBytes = kShared ? static_cast<int>(kTableRows) * kRowBytes : 0 };
enum : int {
  kScanSteps = kL >= 32   ? 5
               : kL >= 16 ? 4
               : kL >= 8  ? 3
               : kL >= 4  ? 2
               : kL >= 2  ? 1
                          : 0
};

/// Values that a warp publishes per row, computed without inflow to its first node's delete state.
struct WarpRow {
  float leaving;                  // delete flow to the next warp
  float end;                      // sum of its match and delete cells
  float match, insert, deletion;  // its last node
};
/// Their derivatives by the inflow, the same in every row.
struct WarpFactors {
  float leaving, end, deletion;
};

HMMJIT_DEVICE float emission(const FloatFilterParams& p, u32 row, int node) {
  return node < static_cast<int>(p.model_length)
             ? p.emissions[row * p.stride + static_cast<u32>(node)]
             : 0.0f;
}

enum Cost : int { kBmCost, kMmCost, kImCost, kDmCost, kMdCost, kDdCost, kIiCost, kCosts };
// Odds are staged where the emission table will be.
enum : int { kOwners = kWarps * kL };
static_assert(!kShared || kCosts * kH * kOwners * 4 <= kTableBytes, "odds fit the table");

/// One transition odds of a node, 0-based.
HMMJIT_DEVICE float node_odds(const FloatFilterParams& p, int cost, int node) {
  switch (cost) {
    case kBmCost:
      return odds_transition(p, kWordEntry, node);
    case kMmCost:
      return odds_transition(p, kWordMmIn, node);
    case kImCost:
      return multiply(odds_transition(p, kWordMiOut, node - 1),
                      odds_transition(p, kWordImIn, node));
    case kDmCost:
      return odds_transition(p, kWordDmIn, node);
    case kMdCost:
      return odds_transition(p, kWordMdOut, node);
    case kDdCost:
      return odds_transition(p, kWordDdOut, node);
    default:
      return odds_transition(p, kWordIiOut, node);
  }
}

/// The same for all nodes of a lane: through shared memory, which a rolled loop has filled, or from the model
/// itself.
HMMJIT_DEVICE void load_odds(const FloatFilterParams& p, const float* staged, Cost cost, u32 owner,
                             float* odds) {
  HMMJIT_UNROLL
  for (int j = 0; j < kH; ++j) {
    odds[j] = kShared ? staged[(cost * kH + j) * kOwners + static_cast<int>(owner)]
                      : node_odds(p, cost, static_cast<int>(owner) * kH + j);
  }
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads, plan_constants::kBlocks)
    forward_row_scan(const hmmjit_device::FloatFilterParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  // Two rows of records, then the factors and the next slot.
  WarpRow* const warp_rows = reinterpret_cast<WarpRow*>(table + kTableBytes);
  WarpFactors* const factors = reinterpret_cast<WarpFactors*>(warp_rows + 2 * kWarps);
  u32* const next_slot = reinterpret_cast<u32*>(factors + kWarps);

  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u32 warp = kWarps > 1 ? threadIdx.x / 32u : 0u;
  const u32 owner = warp * kL + in_group;
  const u8* const base =
      table + (kWarps > 1 ? owner : (group % (kL < 8 ? 8u / kL : 1u)) * kL + in_group) * 16;
  const u32 below = in_group == 0 ? lane : lane - 1;
  const bool first = in_group == 0;
  const int node = static_cast<int>(owner) * kH;

  float bm[kH], mm[kH], im[kH], dm[kH], md[kH], dd[kH], ii[kH];
  float* const staged = reinterpret_cast<float*>(table);  // [cost][word][owner]
  if constexpr (kShared) {
    for (int i = static_cast<int>(threadIdx.x); i < kCosts * kH * kOwners;
         i += static_cast<int>(blockDim.x)) {
      staged[i] = node_odds(p, i / (kH * kOwners), i % kOwners * kH + i / kOwners % kH);
    }
    sync_block();
  }
  load_odds(p, staged, kBmCost, owner, bm);
  load_odds(p, staged, kMmCost, owner, mm);
  load_odds(p, staged, kImCost, owner, im);
  load_odds(p, staged, kDmCost, owner, dm);
  load_odds(p, staged, kMdCost, owner, md);
  load_odds(p, staged, kDdCost, owner, dd);
  load_odds(p, staged, kIiCost, owner, ii);
  if constexpr (kShared) {
    sync_block();
    // [row][chunk][slot][4 nodes]
    float* const cells = reinterpret_cast<float*>(table);
    for (int i = static_cast<int>(threadIdx.x); i < kTableBytes / 4;
         i += static_cast<int>(blockDim.x)) {
      const int index = i % (kRowBytes / 4);
      const int j = index / (kSlots * 4) * 4 + index % 4;
      const int owner = kL < 8 ? index / 4 % kSlots % kL : index / 4 % kSlots;
      cells[i] = j < kH ? emission(p, static_cast<u32>(i / (kRowBytes / 4)), owner * kH + j) : 0.0f;
    }
  }
  float own_factor = 1.0f, own_end = 0.0f;  // of the inflow: in the outflow, in the sum of the cells
  float last_factor = 1.0f;                 // at the last node
  HMMJIT_UNROLL
  for (int j = 0; j < kH; ++j) {
    own_end = add(own_end, own_factor);
    last_factor = own_factor;
    own_factor = multiply(own_factor, dd[j]);
  }
  // Factor from lane - 2^s - 1's outflow to this lane's, 0 where there is no such lane.
  float scan_factor[kScanSteps > 0 ? kScanSteps : 1];
  float entering_factor = first ? 1.0f : 0.0f;  // from the inflow of lane 0 of this warp
  {
    float product = own_factor;  // over the 2^s lanes up to this one
    HMMJIT_UNROLL
    for (int s = 0; s < kScanSteps; ++s) {
      const u32 distance = 1u << s;
      const bool reaches = in_group >= distance;
      scan_factor[s] = reaches ? product : 0.0f;
      const float other = shuffle_float(product, lane - distance);
      if (reaches) product = multiply(product, other);
    }
    const float before = shuffle_float(product, below);
    if (!first) entering_factor = before;  // lanes 0..v-1, complete by now
  }
  if constexpr (kWarps > 1) {
    float end = multiply(own_end, entering_factor);
    for (u32 o = 16; o > 0; o /= 2) end = add(end, shuffle_float_xor(end, o));
    if (lane == 31) {
      factors[warp].leaving = multiply(entering_factor, own_factor);
      factors[warp].end = end;
      factors[warp].deletion = multiply(entering_factor, last_factor);
    }
  }
  sync_block();

  const u32 count = list_count(p.list);
  for (;;) {
    u32 slot = 0;
    if constexpr (kWarps > 1) {
      if (threadIdx.x == 0) *next_slot = atomic_add(&p.counters->next, 1);
      sync_block();
      slot = *next_slot;
      sync_block();
    } else {
      if (lane == 0) slot = atomic_add(&p.counters->next, plan_constants::kS);
      slot = shuffle(slot, 0);
    }
    if (slot >= count) break;
    if (kWarps == 1) slot += group;
    const bool valid = slot < count;
    const u32 target = valid ? list_target(p.list, slot) : 0u;
    const u32 length = valid ? p.database.length[target] : 0u;
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    const FloatLength specials = p.lengths[p.database.length_class[target]];
    u32 most = length;
    for (u32 o = kL; o < 32; o *= 2) most = max_u32(most, shuffle_xor(most, o));

    float m[kH], ins[kH], del[kH];
    HMMJIT_UNROLL
    for (int j = 0; j < kH; ++j) m[j] = ins[j] = del[j] = 0.0f;
    float N = 1.0f, B = specials.move, J = 0.0f, C = 0.0f;
    double total = 0.0;
    float before_m = 0.0f, before_i = 0.0f, before_d = 0.0f;  // last node of the previous warp
    u32 now = 0, ahead = 0;
    if (length > 0) ahead = load_word(residues);
    for (u32 i = 0; i < most; ++i) {
      if (i % 4u == 0) {
        now = ahead;
        if (i + 4 < length) ahead = load_word(residues + i + 4);
      }
      const u32 code = (now >> (8 * (i % 4u))) & 0xffu;
      const u32 x = i < length && code < kTableRows ? code : kTableRows - 1;

      float diagonal_m = shuffle_float(m[kH - 1], below);
      float diagonal_i = shuffle_float(ins[kH - 1], below);
      float diagonal_d = shuffle_float(del[kH - 1], below);
      if (first) {
        diagonal_m = before_m;
        diagonal_i = before_i;
        diagonal_d = before_d;
      }
      // Two partial sums and the delete chain without inflow to this lane.
      float end = 0.0f, end_d = 0.0f, flow = 0.0f;
      HMMJIT_UNROLL
      for (int c = 0; c < kChunks; ++c) {
        float e[4];
        if constexpr (kShared) {
          const Quad quad = *reinterpret_cast<const Quad*>(base + x * kRowBytes + c * kSlots * 16);
          e[0] = bits_float(quad.x);
          e[1] = bits_float(quad.y);
          e[2] = bits_float(quad.z);
          e[3] = bits_float(quad.w);
        } else {
          HMMJIT_UNROLL
          for (int k = 0; k < 4; ++k) {
            e[k] = c * 4 + k < kH ? emission(p, x, node + c * 4 + k) : 0.0f;
          }
        }
        HMMJIT_UNROLL
        for (int k = 0; k < 4; ++k) {
          const int j = c * 4 + k;
          if (j < kH) {
            const float old_m = m[j], old_i = ins[j], old_d = del[j];
            float v = multiply(B, bm[j]);
            v = multiply_add(diagonal_m, mm[j], v);
            v = multiply_add(diagonal_i, im[j], v);
            v = multiply_add(diagonal_d, dm[j], v);
            v = multiply(v, e[k]);
            m[j] = v;
            ins[j] = multiply_add(old_i, ii[j], old_m);
            del[j] = flow;
            end = add(end, v);
            end_d = add(end_d, flow);
            flow = multiply_add(flow, dd[j], multiply(v, md[j]));
            diagonal_m = old_m;
            diagonal_i = old_i;
            diagonal_d = old_d;
          }
        }
      }
      HMMJIT_UNROLL
      for (int s = 0; s < kScanSteps; ++s) {
        flow = multiply_add(shuffle_float(flow, lane - (1u << s)), scan_factor[s], flow);
      }
      float entering = shuffle_float(flow, below);
      if (first) entering = 0.0f;
      end = multiply_add(own_end, entering, add(end, end_d));
      HMMJIT_UNROLL
      for (u32 o = kL / 2; o > 0; o /= 2) end = add(end, shuffle_float_xor(end, o));
      float E = end;
      if constexpr (kWarps > 1) {
        WarpRow* const records = warp_rows + (i % 2u) * kWarps;
        if (lane == 31) {
          records[warp].leaving = flow;
          records[warp].end = end;
          records[warp].match = m[kH - 1];
          records[warp].insert = ins[kH - 1];
          records[warp].deletion = multiply_add(entering, last_factor, del[kH - 1]);
        }
        sync_block();
        float into = 0.0f;  // inflow of warp w
        E = 0.0f;
        before_m = before_i = before_d = 0.0f;
        for (u32 w = 0; w < kWarps; ++w) {
          const WarpRow record = records[w];
          const WarpFactors factor = factors[w];
          E = add(E, multiply_add(into, factor.end, record.end));
          if (w == warp) entering = multiply_add(into, entering_factor, entering);
          if (w + 1 == warp) {
            before_m = record.match;
            before_i = record.insert;
            before_d = multiply_add(into, factor.deletion, record.deletion);
          }
          into = multiply_add(into, factor.leaving, record.leaving);
        }
      }
      HMMJIT_UNROLL
      for (int j = 0; j < kH; ++j) {
        del[j] = add(del[j], entering);
        entering = multiply(entering, dd[j]);
      }
      if (i < length) {
        N = multiply(N, specials.loop);
        C = multiply_add(C, specials.loop, multiply(E, p.ec));
        J = multiply_add(J, specials.loop, multiply(E, p.ej));
        B = multiply(add(J, N), specials.move);
        if (E > scale_above()) {
          const float scale = divide(1.0f, E);
          N = multiply(N, scale);
          C = multiply(C, scale);
          J = multiply(J, scale);
          B = multiply(B, scale);
          before_m = multiply(before_m, scale);
          before_i = multiply(before_i, scale);
          before_d = multiply(before_d, scale);
          HMMJIT_UNROLL
          for (int j = 0; j < kH; ++j) {
            m[j] = multiply(m[j], scale);
            ins[j] = multiply(ins[j], scale);
            del[j] = multiply(del[j], scale);
          }
          total += natural_log(static_cast<double>(E));
        }
      }
    }
    if (valid && first && warp == 0) {
      p.results[slot] =
          static_cast<float>(total + natural_log(static_cast<double>(multiply(C, specials.move))));
    }
  }
}
