// Rows of Forward and Backward of long models in HMMER's order of operations (common/four_lane.cuh), one
// target per block: each of the four places is a warp, whose lanes own kRun consecutive stripes each and keep their
// cells in registers.
//
// Cells of M and I depend on the previous row alone. Two kinds of dependency chains remain; each is computed in
// parts, one per lane, with the bits of the serial order:
//   delete chain: every lane begins with a guess of the flow entering its part and repeats the part with the value
//     that left its neighbour, until no entering value changes. A flow fades by the extension odds at each node, so
//     few repetitions suffice.
//   sums: the cells of a place pass through shared memory, and all lanes of its warp add them one after the other.
#ifndef HMMJIT_KERNEL_FOUR_WARP_CUH_
#define HMMJIT_KERNEL_FOUR_WARP_CUH_

#include "common/four_lane.cuh"

namespace hmmjit_device {
namespace {  // as in common/four_lane.cuh

enum : int { kRun = plan_constants::kRun };
static_assert(kRun >= 1 && kRun <= kLongestRun && kTargets == 1, "one target a block");
enum : u32 { kPlaceCells = 32 * kRun, kRowCells = 4 * kPlaceCells };

/// Data that the warps of a block exchange. An array has an element per place; pairs of arrays alternate, so that
/// one is read while the other is written.
struct Exchange {
  float match[4], insert[4], deletion[2][4];  ///< of the last or the first stripe of a place
  float sum[4], flow[4];
  float leaving[2][4];
  u32 changed[2][4];
  float best_match[4], best_deletion[4];
  u32 match_at[4], deletion_at[4];
  u32 item, first_unit;
};
static_assert(sizeof(Exchange) <= 4 * kExchangeFloats, "four_warp_floats() has room for it");

/// A thread of a block: its place is its warp.
struct Place {
  u32 place, lane;
  u32 stripes;      ///< Q
  u32 last_lane;    ///< the lane with the last stripe of each place
  int real;         ///< stripes of this lane within the model
  int last;         ///< index of the last stripe in this lane; -1: it is elsewhere
  const Quad* in;   ///< entry, and odds to the next node from M, I and D, for stripe j at [32 * j]
  const Quad* out;  ///< M to I, I to I, M to D, D to D; likewise
  const Quad* below;  ///< `in` of the previous place's last stripe; zeros before place 0
  const float* emissions;  ///< DomainParams::run_emissions of stripe 0 of this lane
  const float* bounds;
  float backward_bound;
  Exchange* exchange;
  bool serial;  ///< model below kSerialBelow
};
/// The cells of a place that a warp adds in order; they follow the exchange area.
HMMJIT_DEVICE float* place_cells(const Place& t) {
  return reinterpret_cast<float*>(t.exchange) + kExchangeFloats + t.place * (kSummedLanes * run_stride(kRun));
}
// Indices into a Quad.
enum : int { kEntry = 0, kMatch = 1, kInsert = 2, kDeletion = 3, kOpen = 0, kStay = 1, kSkip = 2, kExtend = 3 };

/// Fills the odds and describes the thread; `shared` has four_warp_floats(kRun). Called by all threads.
HMMJIT_DEVICE Place make_place(const DomainParams& p, u8* shared) {
  const u32 Q = p.stripes;
  float* const in = reinterpret_cast<float*>(shared);
  float* const out = in + 4 * kRowCells;
  float* const bounds = out + 4 * kRowCells;
  for (u32 at = threadIdx.x; at < 4 * kRowCells; at += blockDim.x) {
    const u32 which = at % 4u, cell = at / 4u;
    const u32 q = cell % 32u * kRun + cell % kPlaceCells / 32u, node = cell / kPlaceCells * Q + q;
    const bool real = q < Q && node < p.model_length, next = q < Q && node + 1 < p.model_length;
    const float* const odds = p.transitions + node;
    if (which == kEntry) {
      in[at] = real ? odds[kWordEntry * p.stride] : 0.0f;
      out[at] = real ? odds[kWordMiOut * p.stride] : 0.0f;
    } else {
      // Odds into a node are stored with that node.
      const u32 into = which == kMatch ? kWordMmIn : which == kInsert ? kWordImIn : kWordDmIn;
      const u32 from = which == kStay ? kWordIiOut : which == kSkip ? kWordMdOut : kWordDdOut;
      in[at] = next ? odds[into * p.stride + 1] : 0.0f;
      // Stripes that do not exist pass on their inflow unchanged.
      out[at] = real ? odds[from * p.stride] : which == kExtend && q >= Q ? 1.0f : 0.0f;
    }
  }
  if (threadIdx.x < 32u) bounds[threadIdx.x] = p.bounds[threadIdx.x];
  Place t;
  t.place = threadIdx.x / 32u;
  t.lane = threadIdx.x % 32u;
  t.stripes = Q;
  t.last_lane = (Q - 1) / kRun;
  const int left = static_cast<int>(Q) - static_cast<int>(t.lane) * kRun;
  t.real = left < 0 ? 0 : left < kRun ? left : static_cast<int>(kRun);
  t.last = t.lane == t.last_lane ? t.real - 1 : -1;
  t.in = reinterpret_cast<const Quad*>(in) + t.place * kPlaceCells + t.lane;
  t.out = reinterpret_cast<const Quad*>(out) + t.place * kPlaceCells + t.lane;
  // Before place 0: odds of the model's last node, which has no successor.
  const u32 before_place = (t.place + 3) % 4u;
  t.below = reinterpret_cast<const Quad*>(in) + before_place * kPlaceCells + (Q - 1) % kRun * 32u +
            t.last_lane;
  t.emissions = p.run_emissions + t.place * kPlaceCells + t.lane;
  t.bounds = bounds;
  t.backward_bound = p.backward_bound;
  t.exchange = reinterpret_cast<Exchange*>(bounds + 32);
  t.serial = p.model_length < kSerialBelow;
  sync_block();
  return t;
}

/// Emission odds of a residue for this thread's stripes; zero where there is none.
HMMJIT_DEVICE void read_emission(const Place& t, u32 x, float (&e)[kRun]) {
  const float* const from = t.emissions + x * kRowCells;
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) e[j] = from[32 * j];
}

// A chain visits lanes in ascending order in Forward, in descending order in Backward.
/// The value of the previously visited lane; its own in the first one.
template <bool kUp>
HMMJIT_DEVICE float before(float v, u32 lane, u32 distance = 1) {
  const u32 from = kUp ? lane - distance : lane + distance;
  return bits_float(shuffle(float_bits(v), from < 32u ? from : lane));
}
HMMJIT_DEVICE float value_of(float v, u32 lane) { return bits_float(shuffle(float_bits(v), lane)); }

/// `sum` plus the cells of all lanes, each addition rounded, in the order of a chain. The result is in all lanes.
template <bool kUp>
HMMJIT_DEVICE float ordered_sum(const Place& t, float sum, const float (&cells)[kRun]) {
  constexpr int kQuads = (kRun + 3) / 4, kStride = static_cast<int>(run_stride(kRun)) / 4;
  // Quads of a round, which takes some lanes, and of those prefetched.
  constexpr int kLanes = kQuads == 1 ? 4 : 2, kRound = kLanes * kQuads;
  constexpr int kAhead = kRound % 3 == 0 ? 3 : kRound % 4 == 0 ? 4 : kQuads;
  static_assert(kRound % kAhead == 0 && 4 * kAhead <= kPrefetchFloats, "a quad stays in its registers");
  constexpr u32 kHalf = kSummedLanes;  // of the lanes: all together would take more memory than two blocks have
  Quad* const all = reinterpret_cast<Quad*>(place_cells(t));
  HMMJIT_UNROLL_BY(1)
  for (u32 half = 0; half < 2; ++half) {
    const u32 first = (half == 0) == kUp ? 0u : kHalf;
    if (first > t.last_lane) continue;
    sync_warp();  // the previous cells have been read
    if (t.lane - first < kHalf) {
      HMMJIT_UNROLL
      for (int q = 0; q < kQuads; ++q) {
        const auto cell = [&](int j) { return j < kRun ? float_bits(cells[j < kRun ? j : 0]) : 0u; };
        all[static_cast<int>(t.lane - first) * kStride + q] = {cell(4 * q), cell(4 * q + 1), cell(4 * q + 2),
                                                               cell(4 * q + 3)};
      }
    }
    sync_warp();
    const int last = static_cast<int>(t.last_lane - first < kHalf ? t.last_lane - first : kHalf - 1u);
    const Quad* from = all + (kUp ? 0 : last * kStride);
    // The n-th quad of the round, or of the next one; what is read beyond the last lane is not used.
    const auto quad = [&](int n) {
      const int lane = n / kQuads, q = n % kQuads;
      return from[kUp ? lane * kStride + q : kQuads - 1 - q - lane * kStride];
    };
    Quad ahead[kAhead];
    HMMJIT_UNROLL
    for (int n = 0; n < kAhead; ++n) ahead[n] = quad(n);
    HMMJIT_UNROLL_BY(1)
    for (int lane = 0; lane <= last; lane += kLanes) {
      HMMJIT_UNROLL
      for (int n = 0; n < kRound; ++n) {
        if (n > 0 && n % kQuads == 0 && lane + n / kQuads > last) break;
        HMMJIT_UNROLL
        for (int k = 0; k < 4; ++k) {
          const int j = kUp ? n % kQuads * 4 + k : (kQuads - 1 - n % kQuads) * 4 + 3 - k;
          if (j < kRun) sum = add(sum, pick(ahead[n % kAhead], j % 4));
        }
        ahead[n % kAhead] = quad(n + kAhead);
      }
      from += kUp ? kLanes * kStride : -kLanes * kStride;
    }
  }
  return sum;
}

HMMJIT_DEVICE float sum_of_places(const float (&v)[4]) { return add(add(v[0], v[1]), add(v[2], v[3])); }

/// Cells of a thread.
struct RunCells {
  float m[kRun], d[kRun], i[kRun];
  HMMJIT_DEVICE void fill(float v) {
    HMMJIT_UNROLL
    for (int j = 0; j < kRun; ++j) m[j] = d[j] = i[j] = v;
  }
  HMMJIT_DEVICE void scale(float factor) {
    HMMJIT_UNROLL
    for (int j = 0; j < kRun; ++j) {
      m[j] = multiply(m[j], factor);
      d[j] = multiply(d[j], factor);
      i[j] = multiply(i[j], factor);
    }
  }
};

/// The delete chain of a Forward row: c.d has the inflow from matches, `enters` that of the place; both are of the
/// first pass.
HMMJIT_DEVICE void forward_chain(const Place& t, RunCells& c, float enters, float bound) {
  Exchange& x = *t.exchange;
  float extend[kRun], opened[kRun];
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    extend[j] = pick(t.out[32 * j], kExtend);
    opened[j] = c.d[j];
  }
  float flow = t.lane == 0 ? enters : 0.0f, leaves;
  for (;;) {
    leaves = flow;
    HMMJIT_UNROLL
    for (int j = 0; j < kRun; ++j) {
      c.d[j] = add(leaves, opened[j]);
      leaves = multiply(c.d[j], extend[j]);
    }
    const float coming = before<true>(leaves, t.lane);
    const bool changes = t.lane > 0 && float_bits(coming) != float_bits(flow);
    if (t.lane > 0) flow = coming;
    if (!warp_ballot(changes)) break;
  }
  if (t.lane == t.last_lane) x.leaving[0][t.place] = leaves;
  sync_block();
  // Further passes carry the outflow of each place through the next one.
  for (int pass = 1; pass < 4; ++pass) {
    const float* const leaving = x.leaving[(pass - 1) & 1];
    if (!(leaving[0] > bound || leaving[1] > bound || leaving[2] > bound)) break;
    float f = t.place == 0 ? 0.0f : leaving[t.place - 1];
    bool changed = false;
    for (u32 at = 0; f > bound && at <= t.last_lane; ++at) {
      if (t.lane == at) {
        HMMJIT_UNROLL
        for (int j = 0; j < kRun; ++j) {
          const float value = add(f, c.d[j]);
          changed = changed || (j < t.real && float_bits(value) != float_bits(c.d[j]));
          c.d[j] = value;
          f = multiply(f, extend[j]);
        }
      }
      f = value_of(f, at);
    }
    if (pass == 3) break;
    const u32 any = warp_ballot(changed);
    if (t.lane == 0) {
      x.leaving[pass & 1][t.place] = f;
      x.changed[pass & 1][t.place] = any;
    }
    sync_block();
    const u32* const by = x.changed[pass & 1];
    if ((by[0] | by[1] | by[2] | by[3]) == 0 && !t.serial) break;
  }
}

/// One row of Forward in place. `B` of the previous row; `factor`: by which its cells were scaled since their last
/// ones were exchanged; `e`: its emission odds, replaced by those of residue `next`. Returns E before scaling.
HMMJIT_DEVICE float forward_row(const Place& t, RunCells& c, float B, float factor, float bound,
                                float (&e)[kRun], u32 next) {
  Exchange& x = *t.exchange;
  Quad own = t.in[32 * (kRun - 1)];
  float from_m = before<true>(multiply(c.m[kRun - 1], pick(own, kMatch)), t.lane);
  float from_i = before<true>(multiply(c.i[kRun - 1], pick(own, kInsert)), t.lane);
  float from_d = before<true>(multiply(c.d[kRun - 1], pick(own, kDeletion)), t.lane);
  if (t.lane == 0) {
    const u32 below = (t.place + 3) % 4u;
    const Quad odds = *t.below;
    from_m = multiply(multiply(x.match[below], factor), pick(odds, kMatch));
    from_i = multiply(multiply(x.insert[below], factor), pick(odds, kInsert));
    from_d = multiply(multiply(x.deletion[0][below], factor), pick(odds, kDeletion));
  }
  HMMJIT_UNROLL
  for (int j = kRun - 1; j >= 0; --j) {
    const Quad out = t.out[32 * j];
    const float entry = pick(own, kEntry);
    if (j > 0) own = t.in[32 * (j - 1)];
    float v = multiply(B, entry);
    v = add(v, j > 0 ? multiply(c.m[j > 0 ? j - 1 : 0], pick(own, kMatch)) : from_m);
    v = add(v, j > 0 ? multiply(c.i[j > 0 ? j - 1 : 0], pick(own, kInsert)) : from_i);
    v = add(v, j > 0 ? multiply(c.d[j > 0 ? j - 1 : 0], pick(own, kDeletion)) : from_d);
    v = multiply(v, e[j]);
    c.i[j] = add(multiply(c.m[j], pick(out, kOpen)), multiply(c.i[j], pick(out, kStay)));
    c.m[j] = v;
  }
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    const float opened = multiply(c.m[j], pick(t.out[32 * j], kSkip));
    if (j == t.last) x.flow[t.place] = opened;
    if (j + 1 < kRun) {
      c.d[j + 1 < kRun ? j + 1 : 0] = j + 1 < t.real ? opened : 0.0f;
    } else {
      c.d[0] = before<true>(opened, t.lane);
    }
  }
  if (t.lane == 0 || t.real == 0) c.d[0] = 0.0f;
  sync_block();
  forward_chain(t, c, t.place == 0 ? 0.0f : x.flow[t.place - 1], bound);
  read_emission(t, next, e);
  float sum = ordered_sum<true>(t, 0.0f, c.m);
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    if (j >= t.real) c.d[j] = 0.0f;
  }
  sum = ordered_sum<true>(t, sum, c.d);
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    if (j == t.last) {
      x.match[t.place] = c.m[j];
      x.insert[t.place] = c.i[j];
      x.deletion[0][t.place] = c.d[j];
    }
  }
  if (t.lane == 0) x.sum[t.place] = sum;
  sync_block();
  return sum_of_places(x.sum);
}

HMMJIT_DEVICE void store_row(SpecialRow* row, float E, const Specials& sp, float scale) {
  if (threadIdx.x == 0) *row = {E, sp.N, sp.J, sp.B, sp.C, scale, 0.0f, 0.0f};
}
HMMJIT_DEVICE void rescale(Specials* sp, float* E, float scale) {
  *E = divide(*E, scale);
  sp->N = divide(sp->N, scale);
  sp->J = divide(sp->J, scale);
  sp->B = divide(sp->B, scale);
  sp->C = divide(sp->C, scale);
}

/// Forward of the block's target. Special states are written to forward[0..length]; keep(i, c, scale) is called for
/// each row after rescaling. Returns C of the last row.
template <typename Keep>
HMMJIT_DEVICE float forward_pass(const Place& t, const Residues& residues,
                                 FloatLength lengths, EndOdds ends, SpecialRow* forward,
                                 const Keep& keep) {
  RunCells c;
  c.fill(0.0f);
  if (t.lane == t.last_lane)
    t.exchange->match[t.place] = t.exchange->insert[t.place] = t.exchange->deletion[0][t.place] = 0.0f;
  Specials sp;
  sp.loop = lengths.loop;
  sp.move = lengths.move;
  sp.N = 1.0f;
  sp.B = lengths.move;
  sp.J = sp.C = 0.0f;
  store_row(forward, 0.0f, sp, 1.0f);
  float e[kRun], factor = 1.0f;
  u32 x = residues.at(1);
  read_emission(t, x, e);
  sync_block();
  for (u32 i = 1; i <= residues.length; ++i) {
    const u32 next = residues.at(i + 1);
    float E = forward_row(t, c, sp.B, factor, multiply(sp.B, t.bounds[x]), e, next);
    sp.N = multiply(sp.N, sp.loop);
    sp.C = add(multiply(sp.C, sp.loop), multiply(E, ends.c));
    sp.J = add(multiply(sp.J, sp.loop), multiply(E, ends.j));
    sp.B = add(multiply(sp.J, sp.move), multiply(sp.N, sp.move));
    const float scale = E > rescale_above() ? E : 1.0f;
    factor = 1.0f;
    if (scale > 1.0f) {
      rescale(&sp, &E, scale);
      factor = divide(1.0f, scale);
      c.scale(factor);
    }
    keep(i, c, scale);
    store_row(forward + i, E, sp, scale);
    x = next;
  }
  sync_block();
  return sp.C;
}

/// The delete chain of a Backward row: c.d has the flow to the matches after it, `enters` the value above the
/// place's last stripe. Returns which of Exchange::deletion has the first stripes.
HMMJIT_DEVICE u32 backward_chain(const Place& t, RunCells& c, float enters, float E, float bound) {
  Exchange& x = *t.exchange;
  float extend[kRun], opened[kRun];
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    extend[j] = pick(t.out[32 * j], kExtend);
    opened[j] = c.d[j];
  }
  float flow = t.lane == t.last_lane ? enters : E, leaves;
  for (;;) {
    float v = flow;
    HMMJIT_UNROLL
    for (int j = kRun - 1; j >= 0; --j) {
      leaves = multiply(v, extend[j]);
      v = add(opened[j], add(leaves, j < t.real ? E : 0.0f));
      c.d[j] = v;
    }
    const float coming = before<false>(v, t.lane);
    const bool changes = t.lane < t.last_lane && float_bits(coming) != float_bits(flow);
    if (t.lane < t.last_lane) flow = coming;
    if (!warp_ballot(changes)) break;
  }
  if (t.lane == 0) {
    x.leaving[0][t.place] = leaves;
    x.deletion[0][t.place] = c.d[0];
  }
  sync_block();
  int pass = 0;
  for (; pass < 3; ++pass) {
    const float* const leaving = x.leaving[pass & 1];
    if (!(leaving[1] > bound || leaving[2] > bound || leaving[3] > bound)) break;
    float f = t.place == 3 ? 0.0f : leaving[t.place + 1];
    for (u32 n = 0; f > bound && n <= t.last_lane; ++n) {
      const u32 at = t.last_lane - n;
      if (t.lane == at) {
        HMMJIT_UNROLL
        for (int j = kRun - 1; j >= 0; --j) {
          f = multiply(f, extend[j]);
          c.d[j] = add(c.d[j], f);
        }
      }
      f = value_of(f, at);
    }
    if (t.lane == 0) {
      x.leaving[~pass & 1][t.place] = f;
      x.deletion[~pass & 1][t.place] = c.d[0];
    }
    sync_block();
  }
  return static_cast<u32>(pass & 1);
}

/// One row of Backward in place: cells of row i+1, and emission odds of residue i+1, become those of row
/// i before scaling. `begins`: the move to T in the last row, else zero. `e` gets the emission odds of `residue`; they
/// are read, and before_chain() is called, where few registers are in use. Returns E.
template <typename Before>
HMMJIT_DEVICE float backward_row(const Place& t, RunCells& c, Specials* sp, float begins, EndOdds ends,
                                 float (&e)[kRun], u32 residue, const Before& before_chain) {
  Exchange& x = *t.exchange;
  float entered[kRun], after[kRun];
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    c.m[j] = multiply(c.m[j], e[j]);
    entered[j] = multiply(c.m[j], pick(t.in[32 * j], kEntry));
  }
  read_emission(t, residue, e);
  after[kRun - 1] = before<false>(c.m[0], t.lane);
  HMMJIT_UNROLL
  for (int j = 0; j + 1 < kRun; ++j) after[j] = c.m[j + 1];
  const float sum = ordered_sum<false>(t, 0.0f, entered);
  if (t.lane == 0) {
    x.sum[t.place] = sum;
    x.match[t.place] = c.m[0];
    x.flow[t.place] = multiply(after[0], pick(t.in[0], kDeletion));
  }
  sync_block();
  sp->B = sum_of_places(x.sum);
  sp->C = add(multiply(sp->C, sp->loop), begins);
  sp->J = add(multiply(sp->B, sp->move), multiply(sp->J, sp->loop));
  sp->N = add(multiply(sp->B, sp->move), multiply(sp->N, sp->loop));
  const float E = add(multiply(sp->C, ends.c), multiply(sp->J, ends.j));
  const u32 above = t.place + 1;
  const float next = above < 4 ? x.match[above] : 0.0f;
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    const Quad in = t.in[32 * j], out = t.out[32 * j];
    if (j == t.last) after[j] = next;
    c.d[j] = multiply(after[j], pick(in, kDeletion));
    c.m[j] = add(multiply(c.i[j], pick(out, kOpen)), multiply(after[j], pick(in, kMatch)));
    c.i[j] = add(multiply(c.i[j], pick(out, kStay)), multiply(after[j], pick(in, kInsert)));
    c.m[j] = add(c.m[j], E);
  }
  before_chain();
  const u32 have = backward_chain(t, c, above < 4 ? add(x.flow[above], E) : 0.0f, E,
                                  multiply(E, t.backward_bound));
  const float beyond = above < 4 ? x.deletion[have][above] : 0.0f;
  const float of_next = before<false>(c.d[0], t.lane);
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    const float d = j == t.last ? beyond : j + 1 < kRun ? c.d[j + 1 < kRun ? j + 1 : 0] : of_next;
    c.m[j] = add(c.m[j], multiply(d, pick(t.out[32 * j], kSkip)));
  }
  return E;
}

/// Backward, after forward_pass() for the same target. Calls before(i) ahead of the delete chain of each row, so that
/// what it reads does not occupy registers during the sum, and keep(i, c) after rescaling the row's cells. Returns
/// whether Backward needed factors of its own.
template <typename Before, typename Keep>
HMMJIT_DEVICE bool backward_pass(const Place& t, const Residues& residues,
                                 FloatLength lengths, EndOdds ends, const SpecialRow* forward,
                                 SpecialRow* backward, const Before& before_row, const Keep& keep) {
  const u32 length = residues.length;
  RunCells c;
  c.fill(0.0f);
  Specials sp;
  sp.loop = lengths.loop;
  sp.move = lengths.move;
  sp.N = sp.B = sp.J = sp.C = 0.0f;
  bool own_scale = false;
  float e[kRun];
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) e[j] = 0.0f;
  float forward_scale = forward[length].scale;
  for (u32 i = length; i > 0; --i) {
    const float coming_scale = forward[i - 1].scale;
    float E = backward_row(t, c, &sp, i == length ? lengths.move : 0.0f, ends, e, residues.at(i),
                           [&] { before_row(i); });
    if (sp.B > own_scale_above()) own_scale = true;
    const float scale =
        !own_scale ? forward_scale : sp.B > rescale_above() ? sp.B : 1.0f;
    if (scale > 1.0f) {
      rescale(&sp, &E, scale);
      c.scale(divide(1.0f, scale));
    }
    keep(i, c);
    store_row(backward + i, E, sp, scale);
    forward_scale = coming_scale;
  }
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) c.m[j] = multiply(multiply(c.m[j], e[j]), pick(t.in[32 * j], kEntry));
  const float sum = ordered_sum<true>(t, 0.0f, c.m);
  sync_block();
  if (t.lane == 0) t.exchange->sum[t.place] = sum;
  sync_block();
  Specials zero;
  zero.B = sum_of_places(t.exchange->sum);
  zero.N = add(multiply(zero.B, lengths.move), multiply(sp.N, lengths.loop));
  zero.J = zero.C = 0.0f;
  store_row(backward, 0.0f, zero, 1.0f);
  sync_block();
  return own_scale;
}

/// Distributes the items of a list to the blocks of its model, with their workspace. Called by all threads.
class BlockItems {
 public:
  /// `taken`: counter of the list; `reserved`: counter of the workspace.
  HMMJIT_DEVICE BlockItems(const Place& t, u32 count, u32* taken, u32* reserved)
      : exchange_(t.exchange), count_(count), taken_(taken), reserved_(reserved) {}
  /// The next item, or `count` if there is none or any thread has `over`.
  HMMJIT_DEVICE u32 take(bool over) {
    sync_block();  // all reads of the last item's data are done
    if (threadIdx.x == 0) exchange_->item = over ? count_ : atomic_add(taken_, 1);
    sync_block();
    return exchange_->item < count_ ? exchange_->item : count_;
  }
  /// False if the workspace is exhausted; `space` is then unchanged.
  HMMJIT_DEVICE bool reserve(const DomainParams& p, u32 units, Space* space) {
    if (units <= space->units) return true;
    const u32 wanted = reserved_units(units);
    if (threadIdx.x == 0) exchange_->first_unit = atomic_add(reserved_, wanted);
    sync_block();
    const u32 first = exchange_->first_unit;
    if (first > p.workspace_units || wanted > p.workspace_units - first) return false;
    space->first = first;
    space->units = wanted;
    return true;
  }

 private:
  Exchange* exchange_;
  u32 count_;
  u32 *taken_, *reserved_;
};

}  // namespace
}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_FOUR_WARP_CUH_
