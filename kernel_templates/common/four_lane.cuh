// Rows of Forward and Backward in HMMER's own order of operations: every target has four lanes of a warp,
// its places; node k is in place (k-1) / Q, stripe (k-1) % Q (Farrar 2007; Eddy 2011). Every product and sum is
// rounded separately, in the order of hmmsearch's SSE code, so that all values are equal to the bit. A warp holds
// kTargets targets in its first lanes; its stripes are in shared memory, the model's odds in that of its block. The
// lanes of a target are kTargets apart, so lanes of one place, which read the same odds, are neighbours and share
// one access.
//
// The delete chain of a lane enters the next lane only in further passes over the stripes. HMMER repeats
// them until nothing changes; here they end once the carried value is too small to change anything, with the same
// result (deletion_bounds() of engine/model).
#ifndef HMMJIT_KERNEL_FOUR_LANE_CUH_
#define HMMJIT_KERNEL_FOUR_LANE_CUH_

#include "common/domain_params.h"
#include "common/float_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {  // depends on the including kernel

// Lanes of a warp that compute rows, and their mask. The others do not call forward_pass(), backward_pass() or any
// function that names this mask.
enum : u32 { kTargets = plan_constants::kTargets };
static_assert(kTargets >= 1 && kTargets <= kMostTargetsPerWarp, "targets of a warp");
enum : int { kRowLanes = 4 * kTargets };
enum : u32 { kRowMask = ~0u >> (32 - kRowLanes) };

#ifdef HMMJIT_LOCKSTEP

inline u32 row_shuffle(u32 v, u32 lane) { return hmmjit_lockstep::shuffle(v, lane, kRowMask); }
inline u32 row_ballot(bool predicate) { return hmmjit_lockstep::ballot(predicate, kRowMask); }
inline void sync_rows() { hmmjit_lockstep::sync_warp(kRowMask); }

inline void copy_ahead(void* shared, const void* global) {
  *static_cast<Quad*>(shared) = *static_cast<const Quad*>(global);
}
inline void copies_done() {}
inline u32 lowest_bit(u32 v) { return static_cast<u32>(__builtin_ctz(v)); }
inline u32 highest_bit(u32 v) { return 31u - static_cast<u32>(__builtin_clz(v)); }
inline u32 count_bits(u32 v) { return static_cast<u32>(__builtin_popcount(v)); }
inline u32 device_time() { return 0; }

#else

HMMJIT_DEVICE u32 row_shuffle(u32 v, u32 lane) {
  return __shfl_sync(kRowMask, v, static_cast<int>(lane));
}
HMMJIT_DEVICE u32 row_ballot(bool predicate) { return __ballot_sync(kRowMask, predicate); }
HMMJIT_DEVICE void sync_rows() { __syncwarp(kRowMask); }

/// Positions of bits of a word that is not zero.
HMMJIT_DEVICE u32 lowest_bit(u32 v) { return static_cast<u32>(__ffs(static_cast<int>(v))) - 1u; }
HMMJIT_DEVICE u32 highest_bit(u32 v) { return 31u - static_cast<u32>(__clz(static_cast<int>(v))); }

HMMJIT_DEVICE u32 count_bits(u32 v) { return static_cast<u32>(__popc(static_cast<int>(v))); }

/// In units of 1,024 ns, the same for all warps; wraps around at 2^32.
HMMJIT_DEVICE u32 device_time() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return static_cast<u32>(ns >> 10);
}

/// Starts copying 16 bytes from global to shared memory; complete after this thread's copies_done().
HMMJIT_DEVICE void copy_ahead(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(static_cast<u32>(__cvta_generic_to_shared(shared))), "l"(global)
               : "memory");
#else
  *static_cast<Quad*>(shared) = *static_cast<const Quad*>(global);
#endif
}
HMMJIT_DEVICE void copies_done() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

#endif

HMMJIT_DEVICE float row_shuffle(float v, u32 lane) {
  return bits_float(row_shuffle(float_bits(v), lane));
}
/// The value of this target's lane with place ^ mask.
template <typename Value>
HMMJIT_DEVICE Value place_shuffle_xor(Value v, u32 mask) {
  return row_shuffle(v, threadIdx.x % 32u ^ mask * kTargets);
}

/// The target of a lane, and the lane's place in it, 0 to 3; lanes that compute no rows have places beyond. The
/// lane of place 0 has the target's number.
HMMJIT_DEVICE u32 lane_target() { return threadIdx.x % kTargets; }
HMMJIT_DEVICE u32 lane_place() { return threadIdx.x % 32u / kTargets; }

HMMJIT_DEVICE constexpr float rescale_above() { return 10000.0f; }
HMMJIT_DEVICE constexpr float own_scale_above() { return 1.0e16f; }
// Interval at which a delete chain is checked for the point where it stops changing anything.
enum : int { kCheckEvery = 8 };
// Longer models end after a pass without effect, shorter ones never do.
enum : u32 { kSerialBelow = 100 };

/// One row of special states; `begins` and `ends` are the parser's running sums.
struct alignas(16) SpecialRow {
  float E, N, J, B;
  float C, scale, begins, ends;
};
static_assert(sizeof(SpecialRow) == kSpecialRowBytes, "device layout");

/// The stripes of a warp: cells of this lane at [stripe * kRowLanes], odds of its place in the group of four at
/// [stripe * 32 + 0..7], in the order of WordTransition, emission odds of a row at [stripe * 4]. The odds have one
/// more stripe than Q, for the node after each lane's last one.
struct Stripes {
  float* match;
  float* deletion;
  float* insert;
  const float* odds;
  float* emission;
  const float* bounds;  ///< DomainParams::bounds, by row of emission odds
  int Q;
  u32 place;    ///< 0 to 3
  bool serial;  ///< model below kSerialBelow
};

HMMJIT_DEVICE float pick(const Quad& q, int i) {
  return bits_float(i == 0 ? q.x : i == 1 ? q.y : i == 2 ? q.z : q.w);
}

/// from_below: place r takes the value of place r-1, place 0 zero; from_above: vice versa.
HMMJIT_DEVICE float from_below(float v, u32 place) {
  const u32 lane = threadIdx.x % 32u;
  const float other = row_shuffle(v, place == 0 ? lane : lane - kTargets);
  return place == 0 ? 0.0f : other;
}
HMMJIT_DEVICE float from_above(float v, u32 place) {
  const u32 lane = threadIdx.x % 32u;
  const float other = row_shuffle(v, place == 3 ? lane : lane + kTargets);
  return place == 3 ? 0.0f : other;
}
/// (a0 + a1) + (a2 + a3), in all lanes of a target.
HMMJIT_DEVICE float group_sum(float v) {
  const float pairs = add(v, place_shuffle_xor(v, 1));
  return add(pairs, place_shuffle_xor(pairs, 2));
}
HMMJIT_DEVICE bool group_any(bool v) {
  constexpr u32 kLanes = 1u | 1u << kTargets | 1u << 2 * kTargets | 1u << 3 * kTargets;
  return ((row_ballot(v) >> lane_target()) & kLanes) != 0;
}

/// The model of a block, and the block's and its warps' position among those of the model. Called by all lanes.
struct BlockShare {
  const DomainParams* model;
  u32 block;
  /// Warps of each block that have shared memory; whether this is one; its index among the model's; the model's
  /// number of them.
  HMMJIT_DEVICE u32 warps_of_block() const {
    const u32 most = blockDim.x / 32u;
    return model->block_warps < most ? model->block_warps : most;
  }
  HMMJIT_DEVICE bool works() const { return threadIdx.x / 32u < warps_of_block(); }
  HMMJIT_DEVICE u32 warp() const { return block * warps_of_block() + threadIdx.x / 32u; }
  HMMJIT_DEVICE u32 warps() const { return model->blocks * warps_of_block(); }
};
HMMJIT_DEVICE BlockShare block_share(const DomainBatch& batch) {
  const u32 lane = threadIdx.x % 32u;
  const bool begun = lane < batch.count && batch.models[lane].first_block <= blockIdx.x;
  BlockShare out;
  out.model = batch.models + highest_bit(warp_ballot(begun));
  out.block = blockIdx.x - out.model->first_block;
  return out;
}

/// Fills the model data shared by the warps of a block. Called by all of its lanes.
HMMJIT_DEVICE void load_odds(const DomainParams& p, float* shared) {
  const u32 Q = p.stripes;
  for (u32 at = threadIdx.x; at < (Q + 1) * 32u; at += blockDim.x) {
    // Lane: place * 8 + which.
    const u32 node = at % 32u / 8u * Q + at / 32u;
    shared[at] = node < p.model_length ? p.transitions[at % 8u * p.stride + node] : 0.0f;
  }
  if (threadIdx.x < 32u) shared[(Q + 1) * 32u + threadIdx.x] = p.bounds[threadIdx.x];
  sync_block();
}

/// `odds`: filled by load_odds(); `own`: this warp's memory. For lanes that compute rows.
HMMJIT_DEVICE Stripes make_stripes(const DomainParams& p, const float* odds, float* own) {
  const u32 lane = threadIdx.x % 32u, Q = p.stripes;
  Stripes s;
  s.match = own + lane;
  s.deletion = s.match + Q * kRowLanes;
  s.insert = s.deletion + Q * kRowLanes;
  s.place = lane_place();
  s.odds = odds + s.place * 8;
  s.bounds = odds + (Q + 1) * 32;
  s.emission = own + 3 * Q * kRowLanes + lane_target() * emission_floats(Q) + s.place;
  s.Q = static_cast<int>(Q);
  s.serial = p.model_length < kSerialBelow;
  return s;
}

/// Starts copying the emission odds of residue x to shared memory; complete after copies_done() and sync_rows().
/// The caller must have finished reading the previous ones.
HMMJIT_DEVICE void bring_emission(const DomainParams& p, const Stripes& s, u32 x) {
  const float* const from = p.emissions + x * p.stripes * 4u;
  float* const to = s.emission - s.place;
  for (int q = static_cast<int>(s.place); q < s.Q; q += 4) copy_ahead(to + q * 4, from + q * 4);
}

HMMJIT_DEVICE void clear_cells(const Stripes& s) {
  for (int q = 0; q < s.Q; ++q) s.match[q * kRowLanes] = s.deletion[q * kRowLanes] = s.insert[q * kRowLanes] = 0.0f;
}

HMMJIT_DEVICE void scale_cells(const Stripes& s, float factor) {
  for (int q = 0; q < s.Q; ++q) {
    s.match[q * kRowLanes] = multiply(s.match[q * kRowLanes], factor);
    s.deletion[q * kRowLanes] = multiply(s.deletion[q * kRowLanes], factor);
    s.insert[q * kRowLanes] = multiply(s.insert[q * kRowLanes], factor);
  }
}

struct Specials {
  float N, B, J, C, loop, move;
};

// The loops over stripes prefetch the operands of several stripes: the compiler cannot know that cells and odds do
// not overlap, and too few warps fit to hide the latency of shared memory.

/// Calls work(chunk, q) for all chunks of N stripes from 0 to Q, each prefetched during the previous one, as long
/// as it returns true; returns the stripe that follows. `more`: further operands of Chunk.
template <typename Chunk, int N, typename Work, typename... More>
HMMJIT_DEVICE int ascend(const Stripes& s, const Work& work, const More&... more) {
  if (s.Q < N) return 0;
  Chunk chunk;
  chunk.read(s, 0, more...);
  int at = 0;
  HMMJIT_UNROLL_BY(2)
  for (; at + N <= s.Q; at += N) {
    Chunk next;
    next.read(s, at + 2 * N <= s.Q ? at + N : at, more...);
    if (!work(chunk, at)) return at + N;
    chunk = next;
  }
  return at;
}
/// The same from Q downwards; returns the stripe before which all are done.
template <typename Chunk, int N, typename Work>
HMMJIT_DEVICE int descend(const Stripes& s, const Work& work) {
  if (s.Q < N) return s.Q;
  Chunk chunk;
  int at = s.Q;
  chunk.read(s, at - N);
  HMMJIT_UNROLL_BY(2)
  for (; at >= N; at -= N) {
    Chunk next;
    next.read(s, at >= 2 * N ? at - 2 * N : at - N);
    if (!work(chunk, at - N)) return at - N;
    chunk = next;
  }
  return at;
}

/// Operands of N stripes of a row's recurrences.
template <int N>
struct RowChunk {
  Quad in[N], out[N];
  float e[N], m[N], d[N], i[N];
  HMMJIT_DEVICE void read(const Stripes& s, int q) {
    HMMJIT_UNROLL
    for (int j = 0; j < N; ++j) {
      in[j] = *reinterpret_cast<const Quad*>(s.odds + (q + j) * 32);
      out[j] = *reinterpret_cast<const Quad*>(s.odds + (q + j) * 32 + 4);
      e[j] = s.emission[(q + j) * 4];
      m[j] = s.match[(q + j) * kRowLanes];
      d[j] = s.deletion[(q + j) * kRowLanes];
      i[j] = s.insert[(q + j) * kRowLanes];
    }
  }
};

/// Values that one stripe of the Forward recurrence passes to the next.
struct ForwardFlow {
  float mp, dp, ip, sum, d;
};

template <int N>
HMMJIT_DEVICE void forward_stripes(const Stripes& s, const RowChunk<N>& c, float B, int q,
                                   ForwardFlow* f) {
  HMMJIT_UNROLL
  for (int j = 0; j < N; ++j) {
    float v = multiply(B, pick(c.in[j], kWordEntry));
    v = add(v, multiply(f->mp, pick(c.in[j], kWordMmIn)));
    v = add(v, multiply(f->ip, pick(c.in[j], kWordImIn)));
    v = add(v, multiply(f->dp, pick(c.in[j], kWordDmIn)));
    v = multiply(v, c.e[j]);
    f->sum = add(f->sum, v);
    f->mp = c.m[j];
    f->dp = c.d[j];
    f->ip = c.i[j];
    s.match[(q + j) * kRowLanes] = v;
    s.deletion[(q + j) * kRowLanes] = f->d;
    s.insert[(q + j) * kRowLanes] = add(multiply(f->mp, pick(c.out[j], kWordMiOut - 4)),
                                        multiply(f->ip, pick(c.out[j], kWordIiOut - 4)));
    f->d = multiply(v, pick(c.out[j], kWordMdOut - 4));
  }
}

template <int N>
struct DeleteChunk {
  float d[N], dd[N];
  HMMJIT_DEVICE void read(const Stripes& s, int q) {
    HMMJIT_UNROLL
    for (int j = 0; j < N; ++j) {
      d[j] = s.deletion[(q + j) * kRowLanes];
      dd[j] = s.odds[(q + j) * 32 + kWordDdOut];
    }
  }
};

/// The delete chain over N stripes, from the entering to the leaving flow; adds the cells to `sum`.
template <int N>
HMMJIT_DEVICE void delete_stripes(const Stripes& s, const DeleteChunk<N>& chunk, int q, float* c,
                                  float* sum) {
  HMMJIT_UNROLL
  for (int j = 0; j < N; ++j) {
    const float value = add(*c, chunk.d[j]);
    s.deletion[(q + j) * kRowLanes] = value;
    *sum = add(value, *sum);
    *c = multiply(value, chunk.dd[j]);
  }
}

/// A further pass adds to the result of the previous one.
template <int N>
HMMJIT_DEVICE void delete_stripes_again(const Stripes& s, const DeleteChunk<N>& chunk, int q, float* c,
                                        float* sum, bool* changed) {
  HMMJIT_UNROLL
  for (int j = 0; j < N; ++j) {
    const float value = add(*c, chunk.d[j]);
    s.deletion[(q + j) * kRowLanes] = value;
    *sum = add(value, *sum);
    *changed = *changed || float_bits(value) != float_bits(chunk.d[j]);
    *c = multiply(*c, chunk.dd[j]);
  }
}

/// One row of Forward in place. `B` of the previous row; `bound`: delete flow that changes nothing. Prefetches the
/// emission odds of `next`. Returns E before scaling.
HMMJIT_DEVICE float forward_row(const DomainParams& p, const Stripes& s, float B, float bound,
                                u32 next) {
  copies_done();
  sync_rows();
  const int Q = s.Q;
  ForwardFlow f;
  f.mp = from_below(s.match[(Q - 1) * kRowLanes], s.place);
  f.dp = from_below(s.deletion[(Q - 1) * kRowLanes], s.place);
  f.ip = from_below(s.insert[(Q - 1) * kRowLanes], s.place);
  f.sum = f.d = 0.0f;
  int at = ascend<RowChunk<4>, 4>(s, [&](const RowChunk<4>& chunk, int q) {
    forward_stripes<4>(s, chunk, B, q, &f);
    return true;
  });
  for (; at < Q; ++at) {
    RowChunk<1> chunk;
    chunk.read(s, at);
    forward_stripes<1>(s, chunk, B, at, &f);
  }
  sync_rows();
  bring_emission(p, s, next);
  float c = from_below(f.d, s.place);
  // E adds the D cells in order, after all passes: each pass adds them, since it may be the last.
  float sum = f.sum;
  at = ascend<DeleteChunk<8>, 8>(s, [&](const DeleteChunk<8>& chunk, int q) {
    delete_stripes<8>(s, chunk, q, &c, &sum);
    return true;
  });
  for (; at < Q; ++at) {
    DeleteChunk<1> chunk;
    chunk.read(s, at);
    delete_stripes<1>(s, chunk, at, &c, &sum);
  }
  int summed = Q;
  for (int pass = 1; pass < 4; ++pass) {
    c = from_below(c, s.place);
    if (!row_ballot(c > bound)) break;
    sum = f.sum;
    bool changed = false, flows = true;
    int q = ascend<DeleteChunk<kCheckEvery>, kCheckEvery>(
        s, [&](const DeleteChunk<kCheckEvery>& chunk, int first) {
          delete_stripes_again(s, chunk, first, &c, &sum, &changed);
          flows = row_ballot(c > bound) != 0;
          return flows;
        });
    for (; flows && q < Q; ++q) {
      DeleteChunk<1> chunk;
      chunk.read(s, q);
      delete_stripes_again(s, chunk, q, &c, &sum, &changed);
    }
    summed = q;
    if (q < Q) break;
    if (!group_any(changed) && !s.serial) c = 0.0f;
  }
  HMMJIT_UNROLL_BY(8)
  for (int q = summed; q < Q; ++q) sum = add(s.deletion[q * kRowLanes], sum);
  return group_sum(sum);
}

/// Special states of a Forward row from its E; rescales them and the cells if E requires it. Returns the scale.
HMMJIT_DEVICE float forward_specials(const Stripes& s, Specials* sp, float* E, float ec, float ej) {
  sp->N = multiply(sp->N, sp->loop);
  sp->C = add(multiply(sp->C, sp->loop), multiply(*E, ec));
  sp->J = add(multiply(sp->J, sp->loop), multiply(*E, ej));
  sp->B = add(multiply(sp->J, sp->move), multiply(sp->N, sp->move));
  if (!row_ballot(*E > rescale_above())) return 1.0f;
  // Dividing by one changes nothing.
  const float scale = *E > rescale_above() ? *E : 1.0f;
  sp->N = divide(sp->N, scale);
  sp->C = divide(sp->C, scale);
  sp->J = divide(sp->J, scale);
  sp->B = divide(sp->B, scale);
  scale_cells(s, divide(1.0f, scale));
  *E = divide(*E, scale);
  return scale;
}

/// Values that one stripe of the Backward recurrence passes to the previous one.
struct BackwardFlow {
  float mp, sum, d;
  Quad next;  ///< the inflow of the next node
};

/// Stripes q+N-1 down to q.
template <int N>
HMMJIT_DEVICE void backward_stripes(const Stripes& s, const RowChunk<N>& c, int q, BackwardFlow* f) {
  HMMJIT_UNROLL
  for (int j = N - 1; j >= 0; --j) {
    s.insert[(q + j) * kRowLanes] = add(multiply(c.i[j], pick(c.out[j], kWordIiOut - 4)),
                                        multiply(f->mp, pick(f->next, kWordImIn)));
    f->d = multiply(f->mp, pick(f->next, kWordDmIn));
    s.deletion[(q + j) * kRowLanes] = f->d;
    s.match[(q + j) * kRowLanes] = add(multiply(c.i[j], pick(c.out[j], kWordMiOut - 4)),
                                       multiply(f->mp, pick(f->next, kWordMmIn)));
    f->mp = multiply(c.m[j], c.e[j]);
    f->sum = add(f->sum, multiply(f->mp, pick(c.in[j], kWordEntry)));
    f->next = c.in[j];
  }
}

/// Operands of the passes after the recurrence: cells of D and M, and odds of one kind.
template <int N, int kWhich>
struct EndChunk {
  float d[N], m[N], odds[N];
  HMMJIT_DEVICE void read(const Stripes& s, int q) {
    HMMJIT_UNROLL
    for (int j = 0; j < N; ++j) {
      d[j] = s.deletion[(q + j) * kRowLanes];
      m[j] = s.match[(q + j) * kRowLanes];
      odds[j] = s.odds[(q + j) * 32 + kWhich];
    }
  }
};

/// Delete chain and end: `v` is the value right of stripe q+N-1, finally the cell of q.
template <int N>
HMMJIT_DEVICE void end_stripes(const Stripes& s, const EndChunk<N, kWordDdOut>& chunk, int q, float E,
                               float* v, float* c) {
  HMMJIT_UNROLL
  for (int j = N - 1; j >= 0; --j) {
    *c = multiply(*v, chunk.odds[j]);
    *v = add(chunk.d[j], add(*c, E));
    s.deletion[(q + j) * kRowLanes] = *v;
    s.match[(q + j) * kRowLanes] = add(chunk.m[j], E);
  }
}

/// A further pass adds to the delete chain, from stripe q+N-1 down.
template <int N>
HMMJIT_DEVICE void begin_stripes_again(const Stripes& s, const DeleteChunk<N>& chunk, int q,
                                       float* c) {
  HMMJIT_UNROLL
  for (int j = N - 1; j >= 0; --j) {
    *c = multiply(*c, chunk.dd[j]);
    s.deletion[(q + j) * kRowLanes] = add(chunk.d[j], *c);
  }
}

/// Adds the step from each match to the deletion after it; `c` is finally the deletion of q.
template <int N>
HMMJIT_DEVICE void leave_stripes(const Stripes& s, const EndChunk<N, kWordMdOut>& chunk, int q,
                                 float* c) {
  HMMJIT_UNROLL
  for (int j = N - 1; j >= 0; --j) {
    s.match[(q + j) * kRowLanes] = add(chunk.m[j], multiply(*c, chunk.odds[j]));
    *c = chunk.d[j];
  }
}

/// One row of Backward in place: cells of row i+1 become those of row i before scaling, by the emission odds of
/// residue i+1; prefetches those of `next`. `begins`: the move to T in a target's last row, else zero. Returns E.
HMMJIT_DEVICE float backward_row(const DomainParams& p, const Stripes& s, Specials* sp,
                                 float begins, float ec, float ej, u32 next) {
  copies_done();
  sync_rows();
  const int Q = s.Q;
  BackwardFlow f;
  f.mp = from_above(multiply(s.match[0], s.emission[0]), s.place);
  f.sum = f.d = 0.0f;
  f.next = *reinterpret_cast<const Quad*>(s.odds + Q * 32);
  int at = descend<RowChunk<4>, 4>(s, [&](const RowChunk<4>& chunk, int q) {
    backward_stripes<4>(s, chunk, q, &f);
    return true;
  });
  for (; at > 0; --at) {
    RowChunk<1> chunk;
    chunk.read(s, at - 1);
    backward_stripes<1>(s, chunk, at - 1, &f);
  }
  sync_rows();
  bring_emission(p, s, next);
  sp->B = group_sum(f.sum);
  sp->C = add(multiply(sp->C, sp->loop), begins);
  sp->J = add(multiply(sp->B, sp->move), multiply(sp->J, sp->loop));
  sp->N = add(multiply(sp->B, sp->move), multiply(sp->N, sp->loop));
  const float E = add(multiply(sp->C, ec), multiply(sp->J, ej));

  float v = from_above(add(f.d, E), s.place);
  float c = 0.0f;
  using Ends = EndChunk<8, kWordDdOut>;
  at = descend<Ends, 8>(s, [&](const Ends& chunk, int q) {
    end_stripes<8>(s, chunk, q, E, &v, &c);
    return true;
  });
  for (; at > 0; --at) {
    EndChunk<1, kWordDdOut> chunk;
    chunk.read(s, at - 1);
    end_stripes<1>(s, chunk, at - 1, E, &v, &c);
  }
  const float bound = multiply(E, p.backward_bound);
  for (int pass = 0; pass < 3; ++pass) {
    c = from_above(c, s.place);
    if (!row_ballot(c > bound)) break;
    bool flows = true;
    at = descend<DeleteChunk<kCheckEvery>, kCheckEvery>(
        s, [&](const DeleteChunk<kCheckEvery>& chunk, int first) {
          begin_stripes_again(s, chunk, first, &c);
          flows = row_ballot(c > bound) != 0;
          return flows;
        });
    for (; flows && at > 0; --at) {
      DeleteChunk<1> chunk;
      chunk.read(s, at - 1);
      begin_stripes_again(s, chunk, at - 1, &c);
    }
    if (at > 0) break;
  }
  c = from_above(s.deletion[0], s.place);
  using Leaves = EndChunk<8, kWordMdOut>;
  at = descend<Leaves, 8>(s, [&](const Leaves& chunk, int q) {
    leave_stripes<8>(s, chunk, q, &c);
    return true;
  });
  for (; at > 0; --at) {
    EndChunk<1, kWordMdOut> chunk;
    chunk.read(s, at - 1);
    leave_stripes<1>(s, chunk, at - 1, &c);
  }
  return E;
}

/// Scale of a Backward row, applied to cells and specials. `forward`: Forward's scale of the row; `own`: set once
/// Backward needs factors of its own.
HMMJIT_DEVICE float backward_scale(const Stripes& s, Specials* sp, float* E, bool active,
                                   float forward, bool* own) {
  float scale = 1.0f;
  if (active) {
    if (sp->B > own_scale_above()) *own = true;
    scale = *own ? (sp->B > rescale_above() ? sp->B : 1.0f) : forward;
  }
  if (row_ballot(scale > 1.0f)) {
    *E = divide(*E, scale);
    sp->N = divide(sp->N, scale);
    sp->J = divide(sp->J, scale);
    sp->B = divide(sp->B, scale);
    sp->C = divide(sp->C, scale);
    scale_cells(s, divide(1.0f, scale));
  }
  return scale;
}

/// B of row 0; the cells hold row 1, and the emission odds of its residue are loaded.
HMMJIT_DEVICE float backward_begin(const Stripes& s) {
  copies_done();
  sync_rows();
  float sum = 0.0f;
  for (int q = 0; q < s.Q; ++q) {
    sum = add(sum, multiply(multiply(s.match[q * kRowLanes], s.emission[q * 4]), s.odds[q * 32 + kWordEntry]));
  }
  return group_sum(sum);
}

/// Called by a target's first two lanes.
HMMJIT_DEVICE void store_specials(SpecialRow* row, u32 place, float E, const Specials& sp,
                                  float scale) {
  Quad quad;
  quad.x = float_bits(place == 0 ? E : sp.C);
  quad.y = float_bits(place == 0 ? sp.N : scale);
  quad.z = place == 0 ? float_bits(sp.J) : 0u;
  quad.w = place == 0 ? float_bits(sp.B) : 0u;
  if (place < 2) reinterpret_cast<Quad*>(row)[place] = quad;
}

/// Residues of a target, prefetched, as rows of emission odds. Padding follows its end.
struct Residues {
  const u8* first;
  u32 length;
  u32 first_row = 0;  ///< of its codes
  /// 1-based.
  HMMJIT_DEVICE u32 at(u32 i) const {
    return i >= 1 && i <= length ? first_row + u32{first[i - 1]} : u32{kPaddingResidue};
  }
};

/// The longest of the warp's targets.
HMMJIT_DEVICE u32 longest(const Residues& residues) {
  u32 rows = residues.length;
  for (u32 o = 1; o < 32; o *= 2) rows = max_u32(rows, shuffle_xor(rows, o));
  return rows;
}

/// The transitions from E: to C and, in a multihit model, to J.
struct EndOdds {
  float c, j;
};
HMMJIT_DEVICE EndOdds multihit() { return {0.5f, 0.5f}; }
HMMJIT_DEVICE EndOdds unihit() { return {1.0f, 0.0f}; }

/// Forward of the warp's targets; `rows`: those of the longest. Special states are written to forward[0..length];
/// keep(i, scale) is called for each row of its target after rescaling. Returns C of the target's last row.
template <typename Keep>
HMMJIT_DEVICE float forward_pass(const DomainParams& p, const Stripes& s, const Residues& residues,
                                 u32 rows, FloatLength lengths, EndOdds ends, SpecialRow* forward,
                                 const Keep& keep) {
  const u32 length = residues.length;
  clear_cells(s);
  Specials sp;
  sp.loop = lengths.loop;
  sp.move = lengths.move;
  sp.N = 1.0f;
  sp.B = lengths.move;
  sp.J = sp.C = 0.0f;
  if (length > 0) store_specials(forward, s.place, 0.0f, sp, 1.0f);
  float last_c = 0.0f;
  u32 x = residues.at(1), next = residues.at(2);
  bring_emission(p, s, x);
  for (u32 i = 1; i <= rows; ++i) {
    const u32 after_next = residues.at(i + 2);
    float E = forward_row(p, s, sp.B, multiply(sp.B, s.bounds[x]), next);
    const float scale = forward_specials(s, &sp, &E, ends.c, ends.j);
    x = next;
    next = after_next;
    if (i <= length) {
      keep(i, scale);
      store_specials(forward + i, s.place, E, sp, scale);
    }
    if (i == length) last_c = sp.C;
  }
  copies_done();
  sync_rows();  // the rows are complete
  return last_c;
}

/// Backward, after forward_pass() for the same targets. Calls before(i) before each row and keep(i) after rescaling
/// its cells; i is 0 for a target whose rows are done. Returns whether Backward needed factors of its own.
template <typename Before, typename Keep>
HMMJIT_DEVICE bool backward_pass(const DomainParams& p, const Stripes& s, const Residues& residues,
                                 u32 rows, FloatLength lengths, EndOdds ends,
                                 const SpecialRow* forward, SpecialRow* backward,
                                 const Before& before, const Keep& keep) {
  const u32 length = residues.length;
  clear_cells(s);
  Specials sp;
  sp.loop = lengths.loop;
  sp.move = lengths.move;
  sp.N = sp.B = sp.J = sp.C = 0.0f;
  bool own_scale = false;
  bring_emission(p, s, kPaddingResidue);
  u32 next = residues.at(length);
  float scale_here = length > 0 ? forward[length].scale : 1.0f;
  for (u32 t = 0; t < rows; ++t) {
    const bool active = t < length;
    const u32 i = active ? length - t : 0u;
    const u32 ahead = residues.at(i > 1 ? i - 1 : 0u);
    const float scale_ahead = i > 1 ? forward[i - 1].scale : 1.0f;
    before(i);
    float E = backward_row(p, s, &sp, active && t == 0 ? lengths.move : 0.0f, ends.c, ends.j, next);
    const float scale = backward_scale(s, &sp, &E, active, scale_here, &own_scale);
    next = ahead;
    scale_here = scale_ahead;
    keep(i);
    if (active) store_specials(backward + i, s.place, E, sp, scale);
    if (row_ballot(i == 1)) {
      const float B = backward_begin(s);
      if (i == 1) {
        Specials zero;
        zero.B = B;
        zero.N = add(multiply(B, lengths.move), multiply(sp.N, lengths.loop));
        zero.J = zero.C = 0.0f;
        store_specials(backward, s.place, 0.0f, zero, 1.0f);
      }
    }
  }
  copies_done();
  sync_rows();
  return own_scale;
}

/// Workspace of one group of lanes, reused for the next target if it is large enough.
struct Space {
  u32 first = 0, units = 0;  // kWorkspaceUnit bytes each
};
/// False if the workspace is smaller than that.
HMMJIT_DEVICE bool fits(const DomainParams& p, u32 units) {
  return reserved_units(units) <= p.workspace_units;
}
/// False if it is exhausted. Every lane of the warp calls it; that of place 0 requests it for its target.
HMMJIT_DEVICE bool reserve(const DomainParams& p, u32* taken, u32 units, Space* space) {
  const bool enough = units <= space->units;
  const u32 wanted = reserved_units(units);
  u32 first = 0;
  if (lane_place() == 0 && !enough) first = atomic_add(taken, wanted);
  first = shuffle(first, lane_target());
  if (enough) return true;
  if (first > p.workspace_units || wanted > p.workspace_units - first) return false;
  space->first = first;
  space->units = wanted;
  return true;
}

/// Adds an item to a list for a later kernel: its entry, or kNoEntry if it has too many cells or the list is full.
HMMJIT_DEVICE u32 append(const DomainParams& p, const RegionItem& item, u32 most_cells, u32* count,
                         u32 capacity, RegionItem* list) {
  if (capacity == 0 || item.last - item.first >= most_cells / (4u * p.stripes)) return kNoEntry;
  const u32 entry = atomic_add(count, 1);
  if (entry >= capacity) return kNoEntry;
  list[entry] = item;
  return entry;
}
/// Requests traces of a region of several domains.
HMMJIT_DEVICE u32 ask_for_traces(const DomainParams& p, const RegionItem& item) {
  const u32 entry = append(p, item, p.most_region_cells, &p.counters->regions, p.region_capacity,
                           p.regions);
  if (entry != kNoEntry) p.sampled[entry].status = kLeftToHost;
  return entry;
}
/// Requests that an envelope be scored.
HMMJIT_DEVICE u32 ask_for_envelope(const DomainParams& p, const RegionItem& item) {
  const u32 entry = append(p, item, p.most_envelope_cells, &p.counters->envelopes,
                           p.envelope_capacity, p.envelopes);
  if (entry != kNoEntry) p.scored[entry].status = kLeftToHost;
  return entry;
}

/// The share of a warp in a model's list of items, longest first. The warps of a block begin with neighbours in the
/// list: if one item takes much longer than most, as often happens, the others of its block are the next longest,
/// and few blocks occupy their SMs until these are done.
class ItemShare {
 public:
  /// `most`: concurrent items, bounded by the workspace. A warp takes as long for one as for kTargets.
  HMMJIT_DEVICE ItemShare(const BlockShare& share, u32 count, u32 most) {
    items_ = most < 1 ? 1 : most > kTargets ? kTargets : most;
    const u32 needed = (count + items_ - 1) / items_, allowed = most / items_;
    beginning_ = share.warps();
    if (beginning_ > needed) beginning_ = needed;
    if (beginning_ > allowed) beginning_ = allowed;
    warp_ = share.warp();
  }
  /// Warps beyond the workspace or the list must not begin.
  HMMJIT_DEVICE bool begins() const { return warp_ < beginning_; }
  /// Number of items per take().
  HMMJIT_DEVICE u32 items() const { return items_; }
  /// The first of the next items; `next` counts those taken by warps after their first ones. Called by all lanes.
  HMMJIT_DEVICE u32 take(u32* next) {
    if (!begun_) {
      begun_ = true;
      return warp_ * items_;
    }
    u32 taken = 0;
    if (threadIdx.x % 32u == 0) taken = atomic_add(next, items_);
    return beginning_ * items_ + shuffle(taken, 0);
  }

 private:
  u32 items_, beginning_, warp_;
  bool begun_ = false;
};

/// The time limit of a kernel, after which it starts no item, so that a family with very many hits does not delay
/// all others.
class TimeLimit {
 public:
  /// `first`: the word of the arena where the first warp of the launch records its time. Called by all lanes.
  HMMJIT_DEVICE TimeLimit(const DomainParams& p, u32* first) : limit_(p.time_limit) {
    const u32 now = ~device_time();
    u32 noted = 0;
    if (threadIdx.x % 32u == 0) noted = atomic_max(first, now);
    noted = shuffle(noted, 0);
    begun_ = ~max_u32(noted, shuffle(now, 0));
  }
  /// Called by all lanes.
  HMMJIT_DEVICE bool over() const { return shuffle(device_time() - begun_ >= limit_ ? 1u : 0u, 0) != 0; }

 private:
  u32 begun_, limit_;
};

/// Allocates words for an answer; false if there is no room.
HMMJIT_DEVICE bool take_words(const DomainParams& p, u32 words, u32* at) {
  *at = atomic_add(&p.arena->words, words);
  return *at <= p.word_capacity && words <= p.word_capacity - *at;
}

}  // namespace
}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_FOUR_LANE_CUH_
