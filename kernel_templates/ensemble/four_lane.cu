// Regions of several domains: stochastic tracebacks of their Forward matrix, null2 odds by sampling, and the
// envelopes of the clustered domains of all traces (Eddy 2011), choice by choice as in the CPU's domain stage
// (engine/domain/ensemble.cpp, clustering.cpp).
//
// A warp per region. Forward runs in four of its lanes (common/four_lane.cuh). The traces are sequential, since
// each continues with the random numbers where the previous one stopped. But within a trace the generator can run
// ahead and most steps are predictable: along the diagonal, down a run of insertions or deletions, through the
// flanks. So the warp makes the next 32 choices at once, assuming that each has the predicted outcome, and
// continues after the first that has not.
//
// A choice compares one deviate with running sums of normalised weights, in a fixed order and precision. It is made
// with cheap sums of bounded error; only if the deviate is closer to a boundary than that bound, HMMER's
// own arithmetic decides; margins as on the CPU.
#include "common/four_lane.cuh"

namespace hmmjit_device {
namespace {

static_assert(kTargets == 1, "a warp a region");

HMMJIT_DEVICE constexpr float relative_margin() { return 2.0e-6f; }
HMMJIT_DEVICE constexpr float smallest_total() { return 1.0e-36f; }

enum : u32 { kLeastMembers = kTraces / 4 };    // a cluster must be in a quarter of the traces
HMMJIT_DEVICE constexpr float min_probability() { return 0.25f; }
// Share of the traces that makes an end point credible.
HMMJIT_DEVICE constexpr float min_end_fraction() { return 0.02f; }
// Relative to the shorter one, on the target and on the model.
HMMJIT_DEVICE constexpr float min_overlap() { return 0.8f; }
enum : int { kMaxDiagonalShift = 4 };

// Runs of insertions and deletions are short: number of their choices made at once.
enum : u32 { kShortRun = 8 };

// Shared memory holds, in place of the cells of Forward's rows, the visits of a sampled domain to each node; later
// the hashed segments whose links have been found. The row data of the traces (RowArrays) follows if there is room.

HMMJIT_DEVICE float magnitude(float v) { return v < 0.0f ? -v : v; }

/// HMMER's choice: weights divided by their compensated sum, running sum in double.
template <int N>
HMMJIT_DEVICE u32 choose_exactly(const float (&weights)[N], u32 state) {
  float total = 0.0f, correction = 0.0f;
  HMMJIT_UNROLL
  for (int a = 0; a < N; ++a) {
    const float y = add(weights[a], -correction);
    const float t = add(total, y);
    correction = add(add(t, -total), -y);
    total = t;
  }
  float share[N];
  double norm = 0;
  HMMJIT_UNROLL
  for (int a = 0; a < N; ++a) {
    share[a] = total == 0.0f ? divide(1.0f, static_cast<float>(N)) : divide(weights[a], total);
    norm += static_cast<double>(share[a]);
  }
  const double u = static_cast<double>(state) * 0x1p-32;
  double sum = 0;
  for (int a = 0; a < N; ++a) {
    sum += static_cast<double>(share[a]);
    if (u < sum / norm) return static_cast<u32>(a);
  }
  return static_cast<u32>(N - 1);
}

HMMJIT_DEVICE float rounded(u32 state) { return multiply(static_cast<float>(state), 0x1p-32f); }

HMMJIT_DEVICE u32 choose_of_two(float first, float second, u32 state) {
  const float total = add(first, second);
  const float distance = add(first, -multiply(rounded(state), total));
  if (magnitude(distance) > multiply(relative_margin(), total)) return distance > 0.0f ? 0 : 1;
  const float weights[2] = {first, second};
  return choose_exactly(weights, state);
}

/// Chooses among B, M, I and D.
HMMJIT_DEVICE u32 choose_of_four(const float (&w)[4], u32 state) {
  const float one = w[0], two = add(one, w[1]), three = add(two, w[2]), total = add(three, w[3]);
  const float at = multiply(rounded(state), total);
  const float d0 = add(one, -at), d1 = add(two, -at), d2 = add(three, -at);
  const float margin = add(multiply(relative_margin(), total), smallest_total());
  if (magnitude(d0) > margin && magnitude(d1) > margin && magnitude(d2) > margin)
    return d0 > 0.0f ? 0 : d1 > 0.0f ? 1 : d2 > 0.0f ? 2 : 3;
  return choose_exactly(w, state);
}

/// Model data of the traces, by nodes: in shared memory as far as the warps leave room, so that lanes on
/// neighbouring nodes, or on residue codes of one node, do not wait for each other; otherwise in its original
/// place.
struct ModelTables {
  const float* in;         ///< odds 0 to 3 of WordTransition
  const float* out;        ///< odds 4 to 7
  int odds_node, odds_place;     ///< floats from a node to the next, from a place to the next
  const float* emissions;        ///< of this lane's residue code, [node][kNull2Residues]; or none
  const float* model_emissions;  ///< of this lane's residue code, as in DomainParams
};

/// How a block's shared memory is divided: odds, tables of the model, warps.
struct SharedParts {
  u32 emissions, odds;  ///< where the tables begin; 0: no room
  u32 warps;            ///< where the first warp's part begins
  u32 each;             ///< floats of a warp
};
HMMJIT_DEVICE SharedParts shared_parts(const DomainParams& p, u32 floats) {
  const u32 Q = p.stripes, least = ensemble_warp_floats(Q, kTargets);
  const u32 needed = block_floats(Q) + p.block_warps * least;
  u32 spare = floats > needed ? floats - needed : 0u;
  SharedParts out;
  out.emissions = out.odds = 0;
  out.warps = block_floats(Q);
  out.each = least;
  const u32 emissions = whole_banks(kNull2Residues * Q * 4u), odds = 32 * Q;
  if (emissions <= spare) {
    out.emissions = out.warps;
    out.warps += emissions;
    spare -= emissions;
  }
  if (odds <= spare) {
    out.odds = out.warps;
    out.warps += odds;
    spare -= odds;
  }
  if (p.block_warps > 0) out.each += spare / p.block_warps / 32u * 32u;
  return out;
}

/// Fills the tables; called by all lanes of a block.
HMMJIT_DEVICE void fill_tables(const DomainParams& p, const SharedParts& parts, float* shared) {
  const u32 nodes = 4 * p.stripes, codes = p.residue_codes;
  for (u32 at = threadIdx.x; parts.emissions > 0 && at < codes * nodes; at += blockDim.x) {
    const u32 x = at / nodes, q = at % nodes / 4u, place = at % 4u;
    shared[parts.emissions + (place * p.stripes + q) * kNull2Residues + x] = p.emissions[at];
  }
  for (u32 at = threadIdx.x; parts.odds > 0 && at < 8 * nodes; at += blockDim.x) {
    const u32 q = at / 32u, place = at % 32u / 8u, which = at % 8u;
    shared[parts.odds + (which / 4u * nodes + place * p.stripes + q) * 4u + which % 4u] = shared[at];
  }
  sync_block();
}

HMMJIT_DEVICE ModelTables tables_of(const DomainParams& p, const SharedParts& parts,
                                    const float* shared) {
  const u32 nodes = 4 * p.stripes, codes = p.residue_codes;
  const u32 lane = threadIdx.x % 32u, code = lane < codes ? lane : 0u;
  const int Q = static_cast<int>(p.stripes);
  const bool odds = parts.odds > 0;
  ModelTables t;
  t.emissions = parts.emissions > 0 ? shared + parts.emissions + code : nullptr;
  t.model_emissions = p.emissions + code * nodes;
  t.in = shared + parts.odds;
  t.out = t.in + (odds ? 4 * nodes : 4u);
  t.odds_node = odds ? 4 : 32;
  t.odds_place = odds ? 0 : 8 - 32 * Q;
  return t;
}

/// Row data of the traces: arrays of row_floats() floats each, then the residues.
enum RowArrays : u32 {
  kRowCorrection,  ///< of residue i at [i-1]
  kRowStaysC,      ///< share of the way from C of row i-1, of all that lead to C of row i
  kRowStaysJ,
  kRowFromN,       ///< share of the way from N, of all that lead to B of row i
  kRowB,
  kRowNorm,        ///< one over E; 0: nothing ends here; negative: the row's exits are there
  kRowArrays
};
static_assert(kRowArrays == 6, "region_units() has room for them");
HMMJIT_DEVICE u32 row_floats(u32 L) { return (L + 4) / 4 * 4; }

/// A region's matrix, and the place of its answers.
struct Region {
  SpecialRow* special;        ///< [0..L]
  Quad* cells;                ///< [row][node]: M, D, I
  double* exits;              ///< [row][lane]: running sums of choose_exit()
  float* rows;                ///< RowArrays
  u32* segments;              ///< first and last residue, first and last node, trace, `capacity` each
  u32* scratch;               ///< the place of the cells, reused
  const u8* residues;         ///< residue i at [i-1]
  u32 L, Q, M, capacity;
  u32 codes;                  ///< K; zero if no residue is degenerate
  u32 members;                ///< DomainParams::members of this lane's code
  float loop, move;

  HMMJIT_DEVICE float* row_array(RowArrays which) const { return rows + which * row_floats(L); }
};

HMMJIT_DEVICE FloatLength lengths_of(const DomainParams& p, u32 entry) {
  return p.multihit[p.database.length_class[p.regions[entry].target]];
}

/// The region of an entry of the list, with its arrays in the workspace from a unit on.
HMMJIT_DEVICE Region region_of(const DomainParams& p, u32 entry, u32 unit) {
  const RegionItem item = p.regions[entry];
  Region r;
  r.L = item.last - item.first + 1;
  r.Q = p.stripes;
  r.M = p.model_length;
  r.capacity = segment_capacity(r.L);
  const FloatLength lengths = lengths_of(p, entry);
  r.loop = lengths.loop;
  r.move = lengths.move;
  r.residues = p.database.residues +
               static_cast<u64>(p.database.start[item.target]) * kStartUnit + (item.first - 1);
  r.special =
      reinterpret_cast<SpecialRow*>(p.workspace + static_cast<u64>(unit) * kWorkspaceUnit);
  r.exits = reinterpret_cast<double*>(r.special + (r.L + 1));
  r.segments = reinterpret_cast<u32*>(r.exits + (r.L + 1) * 32u);
  r.rows = reinterpret_cast<float*>(r.segments + kSegmentWords * r.capacity);
  r.cells = reinterpret_cast<Quad*>(r.rows + kRowArrays * row_floats(r.L));
  r.scratch = reinterpret_cast<u32*>(r.cells);
  return r;
}

/// Copies a row from the stripes of Forward to the matrix. Called by every lane of the warp for every row, since four
/// lanes would wait for each load and write a sector each.
HMMJIT_DEVICE void store_row(const Region& r, const float* stripes, u32 i) {
  const u32 lane = threadIdx.x % 32u, place = lane % kRowLanes, cells = kRowLanes * r.Q;
  Quad* const out = r.cells + (i * 4u + place) * r.Q;
  sync_warp();  // the row is complete
  HMMJIT_UNROLL_BY(4)
  for (u32 at = lane; at < cells; at += 32) {
    Quad cell;
    cell.x = float_bits(stripes[at]);
    cell.y = float_bits(stripes[cells + at]);
    cell.z = float_bits(stripes[2 * cells + at]);
    cell.w = 0;
    out[at / kRowLanes] = cell;
  }
  sync_warp();
}

/// Cell of node k, 1-based; zero outside the matrix.
HMMJIT_DEVICE Quad cell_of(const Region& r, u32 i, u32 k) {
  Quad cell;
  cell.x = cell.y = cell.z = cell.w = 0;
  if (i > 0 && k > 0) cell = r.cells[i * r.Q * 4u + (k - 1)];
  return cell;
}

/// Odds of node k, 1-based.
HMMJIT_DEVICE Quad odds_of(const Region& r, const ModelTables& t, const float* odds, u32 k) {
  const int place = static_cast<int>(k > r.Q) + static_cast<int>(k > 2 * r.Q) +
                    static_cast<int>(k > 3 * r.Q);
  return *reinterpret_cast<const Quad*>(odds + (static_cast<int>(k) - 1) * t.odds_node +
                                        place * t.odds_place);
}

/// Value `a` of stripe q in the order of HMMER's vectors: four of M, four of D.
HMMJIT_DEVICE double exit_value(const Region& r, u32 i, u32 q, u32 a, float norm) {
  const Quad* const cell = r.cells + (i * 4u + a % 4u) * r.Q + q;
  const u32 value = reinterpret_cast<const u32*>(cell)[a / 4u];
  return static_cast<double>(multiply(bits_float(value), norm));
}

/// HMMER's choice of the node at which a domain that ends at row i leaves the model: all cells one by one
/// in the order of its vectors, in double. Called by every lane. False if the row's sum is not finite.
HMMJIT_DEVICE bool choose_exit_exactly(const Region& r, u32 i, float norm, double u, u32* node,
                                       bool* match) {
  double sum = 0;
  for (int pass = 0; pass < 4; ++pass) {
    for (u32 q = 0; q < r.Q; ++q) {
      HMMJIT_UNROLL_BY(1)
      for (u32 a = 0; a < 8; ++a) {
        sum += exit_value(r, i, q, a, norm);
        if (u < sum) {
          *match = a < 4;
          *node = a % 4u * r.Q + q + 1;
          return true;
        }
      }
    }
  }
  return false;
}

HMMJIT_DEVICE double shuffle_double(double value, u32 lane) {
#ifdef HMMJIT_LOCKSTEP
  const u64 bits = __builtin_bit_cast(u64, value);
  const u64 low = shuffle(static_cast<u32>(bits), lane), high = shuffle(static_cast<u32>(bits >> 32), lane);
  return __builtin_bit_cast(double, low | high << 32);
#else
  return __shfl_sync(~0u, value, static_cast<int>(lane));
#endif
}

/// Sum of the values of all lanes up to this one; only the first `count` matter.
HMMJIT_DEVICE double running_sum(double value, u32 count) {
  const u32 lane = threadIdx.x % 32u;
  for (u32 o = 1; o < 32 && o < count; o *= 2) {
    const double other = shuffle_double(value, lane >= o ? lane - o : lane);
    if (lane >= o) value += other;
  }
  return value;
}

HMMJIT_DEVICE bool choose_exit(const Region& r, u32 i, u32 state, u32* node, bool* match) {
  const u32 lane = threadIdx.x % 32u;
  const double u = static_cast<double>(state) * 0x1p-32;
  // Each lane takes consecutive stripes. Domains end at few rows, so the sums are kept.
  const u32 each = (r.Q + 31u) / 32u;
  double* const kept = r.exits + i * 32u + lane;
  float* const norms = r.row_array(kRowNorm) + i;
  const float signed_norm = *norms;
  const float norm = magnitude(signed_norm);
  double upto;
  if (signed_norm < 0.0f) {
    upto = *kept;
  } else {
    const u32 first = lane * each;
    const u32 end = first + each < r.Q ? first + each : r.Q;
    upto = 0;
    for (u32 q = first; q < end; ++q) {
      const Quad* const cell = r.cells + i * r.Q * 4u + q;
      HMMJIT_UNROLL
      for (u32 a = 0; a < 4; ++a) {
        const Pair c = *reinterpret_cast<const Pair*>(cell + a * r.Q);
        upto += static_cast<double>(multiply(bits_float(c.x), norm)) +
                static_cast<double>(multiply(bits_float(c.y), norm));
      }
    }
    upto = running_sum(upto, 32);
    *kept = upto;
    sync_warp();
    if (lane == 0) *norms = -norm;
    sync_warp();
  }
  const u32 reached = warp_ballot(u < upto);
  if (reached != 0) {
    // Two orders of adding 8 * Q doubles with a total near one differ by less than this.
    const double margin = (16.0 * static_cast<double>(r.Q) + 64.0) * 0x1p-52;
    const u32 part = lowest_bit(reached), first = part * each;
    const u32 end = first + each < r.Q ? first + each : r.Q;
    double before = shuffle_double(upto, part > 0 ? part - 1 : 0u);
    if (part == 0) before = 0;
    const u32 values = (end - first) * 8u;
    for (u32 base = 0; base < values; base += 32) {
      const u32 at = base + lane;
      const double value =
          at < values ? exit_value(r, i, first + at / 8u, at % 8u, norm) : 0.0;
      const double sum = before + running_sum(value, values - base);
      const u32 beyond = warp_ballot(at < values && u < sum);
      if (beyond != 0) {
        const u32 hit = lowest_bit(beyond);
        const double below = shuffle_double(sum, hit > 0 ? hit - 1 : 0u);
        const double under = hit > 0 ? below : before;
        if (!(u - under > margin && shuffle_double(sum, hit) - u > margin)) break;
        *node = (base + hit) % 4u * r.Q + first + (base + hit) / 8u + 1;
        *match = (base + hit) % 8u < 4u;
        return true;
      }
      before = shuffle_double(sum, 31);
    }
  }
  return choose_exit_exactly(r, i, norm, u, node, match);
}

/// Calls visit(p) for every position first..last, 1-based; a position is always visited by the same lane, so
/// per-position data needs no barriers.
template <typename Visit>
HMMJIT_DEVICE void for_positions(u32 first, u32 last, const Visit& visit) {
  for (u32 p = (first & ~31u) + threadIdx.x % 32u; p <= last; p += 32) {
    if (p >= first) visit(p);
  }
}

/// Adds the null2 odds of a sampled domain at its positions first..last. `visits`: per node, nonzero from
/// first_node to last_node; cleared. HMMER's lanes are summed separately, in ascending order of their
/// nodes; nodes without a visit would add nothing.
HMMJIT_DEVICE void add_null2(const Region& r, const ModelTables& t, float* visits, u32 emitted,
                             u32 first, u32 last, u32 first_node, u32 last_node) {
  const u32 lane = threadIdx.x % 32u;
  // HMMER divides in double and then rounds; the result is the same, since a double has more than twice the
  // digits of a float.
  const float norm = divide(1.0f, static_cast<float>(emitted));
  for (u32 k = first_node - 1 + lane; k < last_node; k += 32) visits[k] = multiply(visits[k], norm);
  sync_warp();
  float odds = 0.0f, low = 0.0f, even = 0.0f;
  HMMJIT_UNROLL_BY(1)
  for (u32 place = 0; place < 4; ++place) {
    const u32 begin = max_u32(place * r.Q, first_node - 1);
    const u32 end = last_node < (place + 1) * r.Q ? last_node : (place + 1) * r.Q;
    float sum = 0.0f;
    if (t.emissions != nullptr) {
      const float* v = visits + begin;
      const float* e = t.emissions + begin * kNull2Residues;
      int left = static_cast<int>(end) - static_cast<int>(begin);
      for (; left >= 8; left -= 8, v += 8, e += 8 * kNull2Residues) {
        HMMJIT_UNROLL
        for (int j = 0; j < 8; ++j) sum = add(sum, multiply(v[j], e[j * int{kNull2Residues}]));
      }
      HMMJIT_UNROLL
      for (int j = 0; j < 7; ++j) {
        if (j < left) sum = add(sum, multiply(v[j], e[j * int{kNull2Residues}]));
      }
    } else {
      HMMJIT_UNROLL_BY(8)
      for (u32 k = begin; k < end; ++k)
        sum = add(sum, multiply(visits[k], t.model_emissions[(k - place * r.Q) * 4u + place]));
    }
    // (0 + 1) + (2 + 3)
    if (place % 2u == 0) even = sum;
    if (place == 1) low = add(even, sum);
    if (place == 3) odds = add(low, add(even, sum));
  }
  sync_warp();
  for (u32 k = first_node - 1 + lane; k < last_node; k += 32) visits[k] = 0.0f;
  // Every lane takes part in every shuffle. A code beyond K has the mean odds of its residues, or one if it has none.
  if (r.codes > 0) {
    float sum = 0.0f;
    for (u32 y = 0; y < r.codes; ++y) {
      const float of_residue = shuffle_float(odds, y);
      if (r.members >> y & 1u) sum = add(sum, of_residue);
    }
    if (lane >= r.codes)
      odds = r.members == 0 ? 1.0f : divide(sum, static_cast<float>(count_bits(r.members)));
  }
  float* const correction = r.row_array(kRowCorrection);
  for (u32 base = first & ~31u; base <= last; base += 32) {
    const u32 at = base + lane;
    const bool within = at >= first && at <= last;
    const float value = shuffle_float(odds, within ? r.residues[at - 1] : 0u);
    if (within) correction[at - 1] = add(correction[at - 1], value);
  }
  sync_warp();
}

/// The generator x' = 69069 x + 1, its next 32 states at once.
struct Random {
  u32 state;
  u32 factor, term;  ///< of this lane
  HMMJIT_DEVICE u32 ahead() const { return state * factor + term; }
  HMMJIT_DEVICE void skip(u32 count) {
    const u32 next = ahead();
    if (count > 0) state = shuffle(next, count - 1);
  }
  HMMJIT_DEVICE u32 next() {
    state = state * 69069u + 1u;
    return state;
  }
};
HMMJIT_DEVICE Random make_random(u32 seeded) {
  Random out;
  out.state = seeded;
  out.factor = 69069u;
  out.term = 1u;
  for (u32 t = 0; t < threadIdx.x % 32u; ++t) {
    out.factor *= 69069u;
    out.term = out.term * 69069u + 1u;
  }
  return out;
}

/// Computes the row data of the traces.
HMMJIT_DEVICE void fill_rows(const Region& r) {
  const u32 floats = row_floats(r.L);
  for (u32 i = threadIdx.x % 32u; i <= r.L; i += 32) {
    const SpecialRow before = r.special[i > 0 ? i - 1 : 0u], here = r.special[i];
    const float leave = multiply(multiply(here.E, 0.5f), here.scale);
    const float c = multiply(before.C, r.loop), j = multiply(before.J, r.loop);
    const float from_n = multiply(here.N, r.move), from_j = multiply(here.J, r.move);
    float* const row = r.rows + i;
    row[kRowCorrection * floats] = 0.0f;
    row[kRowStaysC * floats] = divide(c, add(c, leave));
    row[kRowStaysJ * floats] = divide(j, add(j, leave));
    row[kRowFromN * floats] = divide(from_n, add(from_n, from_j));
    row[kRowB * floats] = here.B;
    row[kRowNorm * floats] =
        here.E > 0.0f ? static_cast<float>(1.0 / static_cast<double>(here.E)) : 0.0f;
  }
}

/// Samples one trace, from its end to its begin. False: falls back to the CPU.
HMMJIT_DEVICE bool sample_trace(const Region& r, const ModelTables& tables, float* visits,
                                Random* random, u32 trace, u32* segment_count) {
  enum class State { kC, kJ, kE, kM, kD, kI, kB, kN };
  const u32 lane = threadIdx.x % 32u;
  const u32 first_segment = *segment_count;
  State state = State::kC;
  u32 i = r.L, k = 0;
  u32 emitted = 0;
  u32 uncorrected = r.L;  // positions above it have their null2 of this trace
  u32 last_row = 0, last_node = 0, first_row = 0, first_node = 0;  // matches of the domain
  const auto one_more = [&](float value) {
    float* const correction = r.row_array(kRowCorrection);
    return [correction, value](u32 at) { correction[at - 1] = add(correction[at - 1], value); };
  };
  while (state != State::kN) {
    switch (state) {
      case State::kC:
      case State::kJ: {
        const u32 row = i - lane;
        const bool there = lane < i;
        bool stays = false;
        if (there) {
          const float share = r.row_array(state == State::kC ? kRowStaysC : kRowStaysJ)[row];
          const u32 u = random->ahead();
          const float distance = add(share, -rounded(u));
          stays = distance > 0.0f;
          if (!(magnitude(distance) > relative_margin())) {
            const SpecialRow before = r.special[row - 1], here = r.special[row];
            const float weights[2] = {
                multiply(state == State::kC ? before.C : before.J, r.loop),
                multiply(multiply(here.E, 0.5f), here.scale)};
            stays = choose_exactly(weights, u) == 0;
          }
        }
        const u32 stops = warp_ballot(!there || !stays);
        if (stops == 0) {
          random->skip(32);
          i -= 32;
          break;
        }
        const u32 stop = lowest_bit(stops);
        // Only probabilities that underflowed lead to row 0 here.
        const bool off = stop >= i;
        random->skip(off ? stop : stop + 1);
        i -= stop;
        state = !off && r.row_array(kRowNorm)[i] != 0.0f ? State::kE : State::kN;
        break;
      }
      case State::kE: {
        bool match = true;
        if (!choose_exit(r, i, random->next(), &k, &match)) return false;
        state = match ? State::kM : State::kD;
        last_row = 0;
        emitted = 0;
        break;
      }
      case State::kM: {
        if (last_row == 0) {
          last_row = i;
          last_node = k;
        }
        const u32 row = i - lane, node = k - lane;
        const bool there = lane < i && lane < k;
        u32 choice = 1;
        if (there) {
          const Quad cell = cell_of(r, row - 1, node - 1);
          const Quad in = odds_of(r, tables, tables.in, node);
          const float w[4] = {multiply(r.row_array(kRowB)[row - 1], pick(in, kWordEntry)),
                              multiply(bits_float(cell.x), pick(in, kWordMmIn)),
                              multiply(bits_float(cell.z), pick(in, kWordImIn)),
                              multiply(bits_float(cell.y), pick(in, kWordDmIn))};
          choice = choose_of_four(w, random->ahead());
        }
        const u32 stops = warp_ballot(!there || choice != 1 || row == 1 || node == 1);
        const u32 count = stops == 0 ? 32 : lowest_bit(stops) + 1;
        if (lane < count) {
          float* const visit = visits + (node - 1);
          *visit = add(*visit, 1.0f);
        }
        sync_warp();
        emitted += count;
        random->skip(count);
        if (stops == 0) {
          i -= 32;
          k -= 32;
          break;
        }
        choice = shuffle(choice, count - 1);
        first_row = i - (count - 1);
        first_node = k - (count - 1);
        i = first_row - 1;
        k = first_node - 1;
        // Off the matrix: every weight underflowed.
        if (choice == 1 || (choice != 0 && (i == 0 || k == 0))) {
          state = State::kN;
        } else {
          state = choice == 0 ? State::kB : choice == 2 ? State::kI : State::kD;
        }
        break;
      }
      case State::kD: {
        const u32 node = k - lane;
        const bool there = lane < kShortRun && lane < k;
        bool stays = false;
        if (there) {
          const Quad cell = cell_of(r, i, node - 1);
          const Quad out = odds_of(r, tables, tables.out, node > 1 ? node - 1 : 1u);
          stays = choose_of_two(
                      node > 1 ? multiply(bits_float(cell.x), pick(out, kWordMdOut - 4)) : 0.0f,
                      node > 1 ? multiply(bits_float(cell.y), pick(out, kWordDdOut - 4)) : 0.0f,
                      random->ahead()) != 0;
        }
        const u32 stops = warp_ballot(there && (!stays || node == 1));
        const u32 count = stops == 0 ? static_cast<u32>(kShortRun) : lowest_bit(stops) + 1;
        random->skip(count);
        k -= count;
        if (k == 0) {
          state = State::kN;
        } else if (stops != 0) {
          state = State::kM;
        }
        break;
      }
      case State::kI: {
        const u32 row = i - lane;
        const bool there = lane < kShortRun && lane < i;
        bool stays = false;
        if (there) {
          const Quad cell = cell_of(r, row - 1, k);
          const Quad out = odds_of(r, tables, tables.out, k);
          stays = choose_of_two(multiply(bits_float(cell.x), pick(out, kWordMiOut - 4)),
                                multiply(bits_float(cell.z), pick(out, kWordIiOut - 4)),
                                random->ahead()) != 0;
        }
        const u32 stops = warp_ballot(there && (!stays || row == 1));
        const u32 count = stops == 0 ? static_cast<u32>(kShortRun) : lowest_bit(stops) + 1;
        if (lane == 0) {
          float* const visit = visits + (k - 1);
          *visit = add(*visit, static_cast<float>(count));
        }
        sync_warp();
        emitted += count;
        random->skip(count);
        i -= count;
        if (i == 0) {
          state = State::kN;
        } else if (stops != 0) {
          state = State::kM;
        }
        break;
      }
      case State::kB: {
        if (*segment_count == r.capacity) return false;
        if (lane < kSegmentWords) {
          r.segments[lane * r.capacity + *segment_count] = lane == 0   ? first_row
                                                           : lane == 1 ? last_row
                                                           : lane == 2 ? first_node
                                                           : lane == 3 ? last_node
                                                                       : trace;
        }
        ++*segment_count;
        // The first residue of a domain counts as outside, as in HMMER.
        for_positions(last_row + 1, uncorrected, one_more(1.0f));
        add_null2(r, tables, visits, emitted, first_row + 1, last_row, first_node, last_node);
        emitted = 0;
        uncorrected = first_row;
        const u32 u = random->next();
        const float distance = add(r.row_array(kRowFromN)[i], -rounded(u));
        bool starts = distance > 0.0f;
        if (!(magnitude(distance) > relative_margin())) {
          const SpecialRow here = r.special[i];
          const float weights[2] = {multiply(here.N, r.move), multiply(here.J, r.move)};
          starts = choose_exactly(weights, u) == 0;
        }
        state = starts ? State::kN : State::kJ;
        break;
      }
      case State::kN:
        break;
    }
  }
  // The rest of the trace is certain and draws nothing. A domain that underflowed has left its visits.
  for_positions(1, uncorrected, one_more(1.0f));
  if (emitted > 0) {
    for (u32 a = lane; a < 4 * r.Q; a += 32) visits[a] = 0.0f;
  }
  sync_warp();
  // From left to right.
  const u32 count = *segment_count - first_segment;
  if (lane < 4) {
    u32* const values = r.segments + lane * r.capacity + first_segment;
    for (u32 a = 0; a < count / 2; ++a) {
      const u32 value = values[a];
      values[a] = values[count - 1 - a];
      values[count - 1 - a] = value;
    }
  }
  return true;
}

/// One sampled domain: first and last residue, first and last node.
struct Segment {
  int i, j, k, m;
};
HMMJIT_DEVICE Segment segment_at(const u32* from, u32 capacity, u32 at) {
  Segment s;
  s.i = static_cast<int>(from[at]);
  s.j = static_cast<int>(from[capacity + at]);
  s.k = static_cast<int>(from[2 * capacity + at]);
  s.m = static_cast<int>(from[3 * capacity + at]);
  return s;
}
HMMJIT_DEVICE int smaller_of(int a, int b) { return a < b ? a : b; }
HMMJIT_DEVICE int larger_of(int a, int b) { return a > b ? a : b; }
HMMJIT_DEVICE bool are_near(int a, int b) {
  return a - b <= kMaxDiagonalShift && b - a <= kMaxDiagonalShift;
}
HMMJIT_DEVICE float ratio(int part, int whole) {
  return divide(static_cast<float>(part), static_cast<float>(whole));
}

/// Segments are linked if they overlap by four fifths of the shorter one on the target and on the model, and lie on
/// nearly the same diagonal.
HMMJIT_DEVICE bool linked(const Segment& a, const Segment& b) {
  if (!are_near(a.i - a.k, b.i - b.k) && !are_near(a.j - a.m, b.j - b.m)) return false;
  const int residues = smaller_of(a.j, b.j) - larger_of(a.i, b.i) + 1;
  if (ratio(residues, smaller_of(a.j - a.i, b.j - b.i) + 1) < min_overlap()) return false;
  // The overlap on the model is counted one short, as in HMMER.
  const int nodes = smaller_of(a.m, b.m) - larger_of(a.k, b.k);
  return !(ratio(nodes, smaller_of(a.m - a.k, b.m - b.k) + 1) < min_overlap());
}

/// Working arrays of the clustering, in a region's scratch.
struct Clustering {
  u32* waiting;    ///< first and last residue and node, number; of segments without a component
  u32* stack;
  u32* component;  ///< by segment
  u32* counts;
  u32* clusters;   ///< kMostClusters: first and last residue, bits of the probability, number
};
HMMJIT_DEVICE Clustering make_clustering(const Region& r) {
  Clustering c;
  c.waiting = r.scratch;
  c.stack = c.waiting + 5 * r.capacity;
  c.component = c.stack + r.capacity;
  c.counts = c.component + r.capacity;
  c.clusters = c.counts + counting_words(r.L, r.Q);
  return c;
}

/// Collects the component of segment top of the waiting list and of all segments linked to it. Components and
/// waiting segments are visited in HMMER's order, since the numbering of components, and with it the order
/// of clusters with equal starts, depends on it. Returns the number of segments.
HMMJIT_DEVICE u32 collect_component(const Region& r, const Clustering& c, u32* searched, u32 number,
                                    u32* left) {
  const u32 lane = threadIdx.x % 32u;
  const u32 capacity = r.capacity;
  u32 size = 0, depth = 1;
  --*left;
  const u32 top = c.waiting[4 * capacity + *left];
  if (lane == 0) c.stack[0] = top;
  sync_warp();
  while (depth > 0) {
    const u32 v = c.stack[--depth];
    if (lane == 0) c.component[v] = number;
    ++size;
    const Segment s = segment_at(r.segments, capacity, v);
    // An equal segment that was searched for links has taken them all from the waiting list.
    u32 hash = static_cast<u32>(s.i) * 0x9e3779b9u;
    hash = (hash ^ static_cast<u32>(s.j)) * 0x85ebca6bu;
    hash = (hash ^ static_cast<u32>(s.k)) * 0xc2b2ae35u;
    hash = (hash ^ static_cast<u32>(s.m)) * 0x9e3779b9u;
    u32* const known = searched + (hash >> 16) % kSearchedSegments;
    const u32 other = *known;
    if (other != 0) {
      const Segment o = segment_at(r.segments, capacity, other - 1);
      if (o.i == s.i && o.j == s.j && o.k == s.k && o.m == s.m) continue;
    }
    sync_warp();
    if (lane == 0) *known = v + 1;
    if (*left == 0) {
      sync_warp();
      continue;
    }
    const u32 last_base = (*left - 1) & ~31u;
    Segment ahead = segment_at(c.waiting, capacity, last_base + lane < *left ? last_base + lane : 0u);
    for (u32 base = last_base;; base -= 32) {
      const Segment here = ahead;
      // Prefetched: what is taken below changes no place before `base`.
      if (base > 0) ahead = segment_at(c.waiting, capacity, base - 32 + lane);
      u32 bits = warp_ballot(base + lane < *left && linked(s, here));
      while (bits != 0) {
        const u32 bit = highest_bit(bits);
        bits ^= 1u << bit;
        --*left;
        if (lane < 5) {
          u32* const values = c.waiting + lane * capacity;
          const u32 taken = values[base + bit];
          values[base + bit] = values[*left];
          if (lane == 4) c.stack[depth] = taken;
        }
        ++depth;
      }
      if (base == 0) break;
    }
    sync_warp();
  }
  return size;
}

/// The smallest (or largest) value that enough members of a component have, else the most frequent one. `counts` is
/// clear before and after.
HMMJIT_DEVICE u32 end_point(const Clustering& c, u32 number, u32 segments,
                            const u32* values, u32 most_value, u32 threshold, bool largest) {
  const u32 lane = threadIdx.x % 32u;
  for (u32 v = lane; v < segments; v += 32) {
    if (c.component[v] == number) atomic_add(c.counts + values[v], 1);
  }
  sync_warp();
  constexpr u32 kNone = 0xffffffffu;
  u32 found = kNone, most = 0, frequent = 0;
  for (u32 value = lane; value <= most_value; value += 32) {
    const u32 count = c.counts[value];
    if (count >= threshold && (largest || found == kNone)) found = value;
    if (count > most) {
      most = count;
      frequent = value;
    }
    c.counts[value] = 0;
  }
  for (u32 o = 1; o < 32; o *= 2) {
    const u32 other = shuffle_xor(found, o);
    if (other != kNone && (found == kNone || (largest ? other > found : other < found)))
      found = other;
    const u32 other_most = shuffle_xor(most, o), other_value = shuffle_xor(frequent, o);
    if (other_most > most || (other_most == most && other_value < frequent)) {
      most = other_most;
      frequent = other_value;
    }
  }
  sync_warp();
  return found != kNone ? found : frequent;
}

/// Traces that a component has members of.
HMMJIT_DEVICE u32 traces_of(const Region& r, const Clustering& c, u32 number, u32 segments) {
  const u32 lane = threadIdx.x % 32u;
  const u32* const trace = r.segments + 4 * r.capacity;
  for (u32 v = lane; v < segments; v += 32) {
    if (c.component[v] == number) c.counts[trace[v]] = 1;
  }
  sync_warp();
  u32 traces = 0;
  for (u32 t = lane; t < (kTraces + 31u) / 32u * 32u; t += 32) {
    traces += static_cast<u32>(t < kTraces && c.counts[t] != 0);
    if (t < kTraces) c.counts[t] = 0;
  }
  for (u32 o = 1; o < 32; o *= 2) traces += shuffle_xor(traces, o);
  sync_warp();
  return traces;
}

/// Orders clusters by their first residue (stable) and drops dominated ones; called by one lane. Returns the number
/// left.
HMMJIT_DEVICE u32 settle(u32* clusters, u32 count) {
  for (u32 a = 1; a < count; ++a) {
    const Quad moved = reinterpret_cast<const Quad*>(clusters)[a];
    u32 b = a;
    for (; b > 0 && reinterpret_cast<const Quad*>(clusters)[b - 1].x > moved.x; --b)
      reinterpret_cast<Quad*>(clusters)[b] = reinterpret_cast<const Quad*>(clusters)[b - 1];
    reinterpret_cast<Quad*>(clusters)[b] = moved;
  }
  for (u32 a = 0; a < count; ++a) {
    const Quad x = reinterpret_cast<const Quad*>(clusters)[a];
    for (u32 b = a + 1; b < count; ++b) {
      const Quad y = reinterpret_cast<const Quad*>(clusters)[b];
      const int xi = static_cast<int>(x.x), xj = static_cast<int>(x.y);
      const int yi = static_cast<int>(y.x), yj = static_cast<int>(y.y);
      const int overlap = smaller_of(xj, yj) - larger_of(xi, yi) + 1;
      if (overlap == 0) break;  // HMMER stops at an exactly adjacent cluster
      const int shorter = smaller_of(xj - xi, yj - yi) + 1;
      if (static_cast<double>(ratio(overlap, shorter)) >= 0.8)
        clusters[4 * (bits_float(x.z) > bits_float(y.z) ? b : a) + 3] = 1;
    }
  }
  u32 kept = 0;
  for (u32 a = 0; a < count; ++a) {
    const Quad x = reinterpret_cast<const Quad*>(clusters)[a];
    if (x.w == 0) reinterpret_cast<Quad*>(clusters)[kept++] = x;
  }
  return kept;
}

/// Single-linkage clusters of the segments, their consensus end points, without dominated ones. False: falls back
/// to the CPU.
HMMJIT_DEVICE bool cluster(const Region& r, const Clustering& c, u32* searched, u32 segments,
                           u32* cluster_count) {
  const u32 lane = threadIdx.x % 32u;
  for (u32 v = lane; v < segments; v += 32) {
    const u32 p = segments - 1 - v;
    for (u32 a = 0; a < 4; ++a)
      c.waiting[a * r.capacity + p] = r.segments[a * r.capacity + v];
    c.waiting[4 * r.capacity + p] = v;
    c.component[v] = 0xffffffffu;
  }
  for (u32 a = lane; a < counting_words(r.L, r.Q); a += 32) c.counts[a] = 0;
  for (u32 a = lane; a < kSearchedSegments; a += 32) searched[a] = 0;
  sync_warp();
  u32 left = segments, number = 0, count = 0;
  while (left > 0) {
    const u32 size = collect_component(r, c, searched, number, &left);
    sync_warp();
    if (size >= kLeastMembers) {
      const u32 traces = traces_of(r, c, number, segments);
      const float probability =
          divide(static_cast<float>(traces), static_cast<float>(kTraces));
      if (probability >= min_probability()) {
        const float least = multiply(static_cast<float>(traces), min_end_fraction());
        u32 threshold = static_cast<u32>(least);
        if (static_cast<float>(threshold) < least) ++threshold;
        const auto point = [&](u32 which, u32 most, bool largest) {
          return end_point(c, number, segments, r.segments + which * r.capacity, most, threshold,
                           largest);
        };
        const u32 i = point(0, r.L, false), j = point(1, r.L, true);
        const u32 k = point(2, r.M, false), m = point(3, r.M, true);
        if (i <= j && k <= m) {
          if (count == kMostClusters) return false;
          if (lane < 4) {
            c.clusters[4 * count + lane] = lane == 0   ? i
                                           : lane == 1 ? j
                                           : lane == 2 ? float_bits(probability)
                                                       : 0u;
          }
          ++count;
        }
      }
    }
    ++number;
  }
  sync_warp();
  if (lane == 0) count = settle(c.clusters, count);
  sync_warp();
  *cluster_count = shuffle(count, 0);
  return true;
}

/// Writes the answer; false if there is no room for it.
HMMJIT_DEVICE bool answer(const Region& r, const DomainParams& p, const RegionItem& item,
                          const Clustering& c, u32 clusters, SampledRegion* out) {
  const u32 lane = threadIdx.x % 32u;
  u32 at = 0;
  bool room = true;
  if (lane == 0) room = take_words(p, r.L + 3 * clusters, &at);
  room = shuffle(room ? 1u : 0u, 0) != 0;
  at = shuffle(at, 0);
  if (lane == 0) out->status = kNoRoom;
  if (!room) return false;
  u32* const words = p.words + at;
  const float* const correction = r.row_array(kRowCorrection);
  for (u32 a = lane; a < r.L; a += 32) words[a] = float_bits(correction[a]);
  for (u32 a = lane; a < clusters; a += 32) {
    RegionItem envelope;
    envelope.target = item.target;
    envelope.first = item.first - 1 + c.clusters[4 * a];
    envelope.last = item.first - 1 + c.clusters[4 * a + 1];
    envelope.clustered = 1;
    u32* const w = words + r.L + 3 * a;
    w[0] = envelope.first;
    w[1] = envelope.last;
    w[2] = ask_for_envelope(p, envelope);
  }
  if (lane == 0) {
    out->clusters = clusters;
    out->words = at;
    out->status = kDone;
    atomic_add(&p.counters->sampled, 1);
  }
  return true;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(32 * plan_constants::kWarps, 1)
    ensemble_four_lane(const hmmjit_device::DomainBatch batch) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const BlockShare share = block_share(batch);
  // Re-read at each use: keeping it would take registers from the rows.
  const DomainParams& p = *share.model;
  const DomainParams of_rows = p;
  float* const odds = reinterpret_cast<float*>(shared);
  load_odds(p, odds);
  const u32 Q = p.stripes;
  float* own;
  {
    const SharedParts parts = shared_parts(p, batch.shared_floats);
    fill_tables(p, parts, odds);
    own = odds + parts.warps + threadIdx.x / 32u * parts.each;
  }
  ItemShare mine(share, p.region_count, p.most_regions);
  if (!share.works() || !mine.begins()) return;
  const Stripes s = make_stripes(p, odds, own);
  const u32 lane = threadIdx.x % 32u;
  const TimeLimit time(p, &p.arena->regions_begun);
  Space space;
  for (;;) {
    if (time.over()) break;
    const u32 at = mine.take(&p.counters->next_region);
    if (at >= p.region_count) break;
    const u32 entry = p.region_order[at];
    const u32 L = region_of(p, entry, 0).L;
    const u8* const bytes = region_of(p, entry, 0).residues;
    if (lane == 0) p.sampled[entry].status = kNoRoom;
    const u32 units = region_units(L, Q);
    if (!fits(p, units)) continue;
    if (!reserve(p, &p.arena->region_units, units, &space)) {
      if (space.units == 0) break;  // other warps have the workspace
      continue;
    }
    if (lane == 0) p.sampled[entry].status = kNotForDevice;
    const u32 first_unit = space.first;
    {
      const Region r = region_of(p, entry, first_unit);
      if (lane < kRowLanes) {
        Residues residues;
        residues.first = bytes;
        residues.length = L;
        forward_pass(of_rows, s, residues, L, lengths_of(p, entry), multihit(), r.special,
                     [&](u32 i, float) { store_row(r, own, i); });
      } else {
        for (u32 i = 1; i <= L; ++i) store_row(r, own, i);
      }
    }
    sync_warp();
    // Rebuilt, so that the rows need not keep it in registers.
    Region r = region_of(p, entry, first_unit);
    const SharedParts parts = shared_parts(p, batch.shared_floats);
    const ModelTables tables = tables_of(p, parts, odds);
    for (u32 a = lane; a < 4 * r.Q; a += 32) own[a] = 0.0f;
    const u32 visited = larger_u32(4 * r.Q, kSearchedSegments);
    const u32 arrays = kRowArrays * row_floats(r.L);
    if (visited + arrays + row_floats(r.L) / 4u <= parts.each) {
      r.rows = own + visited;
      u8* const copy = reinterpret_cast<u8*>(r.rows + arrays);
      for (u32 a = lane; a < r.L; a += 32) copy[a] = r.residues[a];
      r.residues = copy;
    }
    bool degenerate = false;
    for (u32 a = lane; a < r.L; a += 32) degenerate = degenerate || r.residues[a] >= p.residue_codes;
    r.codes = warp_ballot(degenerate) ? p.residue_codes : 0u;
    r.members = p.members[lane];
    fill_rows(r);
    sync_warp();

    Random random = make_random(p.random);
    u32 segments = 0, clusters = 0;
    bool sampled = true;
    for (u32 trace = 0; trace < kTraces && sampled; ++trace)
      sampled = sample_trace(r, tables, own, &random, trace, &segments);
    sync_warp();
    if (!sampled) continue;
    const Clustering c = make_clustering(r);
    if (!cluster(r, c, reinterpret_cast<u32*>(own), segments, &clusters)) continue;
    answer(r, p, p.regions[entry], c, clusters, p.sampled + entry);
    sync_warp();
  }
}
