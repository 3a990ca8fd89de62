// Forward and Backward for one kind of vector. Included once per Highway target, between the passes
// of foreach_target: everything here is in the target's namespace.
#if defined(HMMJIT_DOMAIN_FORWARD_BACKWARD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_DOMAIN_FORWARD_BACKWARD_INL_HPP
#undef HMMJIT_DOMAIN_FORWARD_BACKWARD_INL_HPP
#else
#define HMMJIT_DOMAIN_FORWARD_BACKWARD_INL_HPP
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "domain/float_groups-inl.hpp"
#include "domain/kernels.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hmmjit::domain::HWY_NAMESPACE {
namespace {

using Tables = ForwardTables::Tables;

template <class V>
inline constexpr int kWidth = V::kGroups* kLanes;

// (a0 + a1) + (a2 + a3) of every group, in all its lanes.
template <class V>
HWY_INLINE V group_sum(V a) {
  const V pairs = a + a.swap1();
  return pairs + pairs.swap2();
}
template <class V>
HWY_INLINE V group_max(V a) {
  const V pairs = max(a, a.swap1());
  return max(pairs, pairs.swap2());
}
// All ones in every group with any bit set.
template <class V>
HWY_INLINE V group_any(V a) {
  const V pairs = a | a.swap1();
  return (pairs | pairs.swap2()).nonzero_words();
}
// a where the mask is set, else b.
template <class V>
HWY_INLINE V choose(V mask, V a, V b) {
  return b ^ ((a ^ b) & mask);
}

alignas(64) constexpr std::uint32_t kLaneMask[4][4] = {
    {~0u, 0, 0, 0}, {0, ~0u, 0, 0}, {0, 0, ~0u, 0}, {0, 0, 0, ~0u}};
alignas(16) constexpr std::uint32_t kEveryLane[4] = {~0u, ~0u, ~0u, ~0u};

// Lane r of every group comes from the r-th argument; each argument has one value per group.
template <class V>
HWY_INLINE V pack(V a, V b, V c, V d) {
  return ((a & V::same(kLaneMask[0])) | (b & V::same(kLaneMask[1]))) |
         ((c & V::same(kLaneMask[2])) | (d & V::same(kLaneMask[3])));
}

template <class V>
HWY_INLINE void set_group(V& v, int g, float value) {
  alignas(64) float lanes[kWidth<V>];
  v.store(lanes);
  for (int r = 0; r < kLanes; ++r) lanes[g * kLanes + r] = value;
  v = V::load(lanes);
}
template <class V>
HWY_INLINE float group_value(V v, int g) {
  alignas(64) float lanes[kWidth<V>];
  v.store(lanes);
  return lanes[g * kLanes];
}
template <class V>
HWY_INLINE void fill_group(float* cells, int vectors, int g, float value) {
  for (int j = 0; j < vectors; ++j) {
    std::fill_n(cells + j * kWidth<V> + g * kLanes, kLanes, value);
  }
}

// Calls visit(g) for each group in which a job begins or ends.
template <typename Visit>
HWY_INLINE void at_borders(unsigned borders, const Visit& visit) {
  for (; borders != 0; borders &= borders - 1) visit(std::countr_zero(borders));
}

// Special states and scale factor of a row; each group has one value, in all its lanes.
template <class V>
struct Specials {
  V E, N, J, B, C, scale;

  static HWY_INLINE Specials load(const float* row) {
    const V first = V::load(row), second = V::load(row + kWidth<V>);
    return {first.template lane<0>(), first.template lane<1>(),  first.template lane<2>(),
            first.template lane<3>(), second.template lane<0>(), second.template lane<1>()};
  }
  HWY_INLINE void store(float* row) const {
    pack(E, N, J, B).store(row);
    pack(C, scale, V::zero(), V::zero()).store(row + kWidth<V>);
  }
  HWY_INLINE void divide() {
    E = E / scale;
    N = N / scale;
    J = J / scale;
    B = B / scale;
    C = C / scale;
  }
};
constexpr SpecialRow kNoRow{0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f};

// Moves of the current jobs; zero for groups without one.
template <class V>
struct Moves {
  V loop, move;

  HWY_INLINE void set(int g, const Job* job) {
    set_group(loop, g, job ? job->loop : 0.0f);
    set_group(move, g, job ? job->move : 0.0f);
  }
  static HWY_INLINE Moves of(const LaneCursor& at) {
    Moves moves{V::zero(), V::zero()};
    for (int g = 0; g < V::kGroups; ++g) moves.set(g, at[g]);
    return moves;
  }
};

// Match odds of the residues in one row of the lanes.
template <class V>
struct Emissions {
  const float* odds[V::kGroups];

  HWY_INLINE Emissions(const Tables& t, const Lanes& lanes, int row) {
    const std::uint16_t* const codes = lanes.codes.data() + row * V::kGroups;
    for (int g = 0; g < V::kGroups; ++g) odds[g] = lanes.emission->row(codes[g], t.Q);
  }
  HWY_INLINE V operator[](int q) const { return V::gather(odds, q * kLanes); }
};
// Chains below these bounds times B change no deletion in the row.
template <class V>
HWY_INLINE V deletion_bounds(const Lanes& lanes, int row) {
  alignas(32) float bounds[kMaxGroups];
  const std::uint16_t* const codes = lanes.codes.data() + row * V::kGroups;
  for (int g = 0; g < V::kGroups; ++g) bounds[g] = lanes.emission->deletion_bound[codes[g]];
  return V::of_groups(bounds);
}

constexpr float kRescaleAbove = 10000.0f;
constexpr float kOwnScaleAbove = 1.0e16f;
// Number of stripes between tests whether a deletion chain still changes anything.
constexpr int kCheckEvery = 8;

// Runs the deletion passes over a Forward row after the first, which has left `c` at the last
// stripe. Returns the sum of `matches` and all deletions by lane (`kSum`).
template <class V, bool kSum>
HWY_INLINE V finish_deletions(const Tables& t, V c, V bound, V matches, float* deletions) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const ForwardStripe* const stripe = t.forward.data();
  // E adds the D cells in order, after all passes. The pass that turns out to be the last (nearly
  // always the first one) does so along the way.
  V sum = matches;
  int summed = 0;
  for (int pass = 1; pass < kLanes; ++pass) {
    c = c.up();
    sum = matches;
    summed = 0;
    if (!any_greater(c, bound)) break;
    V changed = V::zero();
    int q = 0;
    while (q < Q) {
      const int end = q + kCheckEvery < Q ? q + kCheckEvery : Q;
      for (; q < end; ++q) {
        float* const cell = deletions + q * 3 * W;
        const V old = V::load(cell);
        const V value = c + old;
        value.store(cell);
        if constexpr (kSum) sum = value + sum;
        changed = changed | (value ^ old);
        c = c * V::same(stripe[q].dd);
      }
      if (!any_greater(c, bound)) break;
    }
    summed = q;
    if (q < Q) break;
    // Longer models stop after a pass without effect, which changes what a later pass would add.
    if (t.M >= 100) c = c & group_any(changed);
  }
  for (int q = summed; kSum && q < Q; ++q) {
    sum = V::load(deletions + q * 3 * W) + sum;
  }
  return sum;
}

// Computes a row of Forward from `previous` into `current`, which may be the same row. visit(q, M,
// I) may change the cells of stripe q before they are stored. With `kSum`, returns E before
// scaling; without, the previous row's deletions are multiplied by `scale_d` when read.
template <class V, bool kSum, typename Visit>
HWY_INLINE V forward_row(const Tables& t, const Emissions<V>& emission, V B, V bound, V scale_d,
                         const float* previous, float* current, const Visit& visit) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const ForwardStripe* const stripe = t.forward.data();
  const auto load_d = [&](const float* cell)
                          HWY_ATTR { return kSum ? V::load(cell) : V::load(cell) * scale_d; };
  const auto match_of = [&](int q, V m0, V i0, V d0) HWY_ATTR {
    const ForwardStripe& f = stripe[q];
    V m = B * V::same(f.bm);
    m = m + m0 * V::same(f.mm_in);
    m = m + i0 * V::same(f.im_in);
    m = m + d0 * V::same(f.dm_in);
    return m * emission[q];
  };
  // The last stripe's match leads to the next lane's first deletion. It is computed ahead, so that
  // the deletion chain can run in the loop over the matches. There are at least two stripes.
  const float* const last = previous + static_cast<std::size_t>(Q - 1) * 3 * W;
  const float* const before = last - 3 * W;
  V c = (match_of(Q - 1, V::load(before), V::load(before + 2 * W), load_d(before + W)) *
         V::same(stripe[Q - 1].md))
            .up();
  V mp = V::load(last).up();
  V dp = load_d(last + W).up();
  V ip = V::load(last + 2 * W).up();
  V sum = V::zero();
  V d = V::zero();
  for (int q = 0; q < Q; ++q) {
    const ForwardStripe& f = stripe[q];
    const float* const in = previous + q * 3 * W;
    float* const out = current + q * 3 * W;
    V m = match_of(q, mp, ip, dp);
    if constexpr (kSum) sum = sum + m;
    mp = V::load(in);
    dp = load_d(in + W);
    ip = V::load(in + 2 * W);
    const V deletion = c + d;
    deletion.store(out + W);
    V i = mp * V::same(f.mi) + ip * V::same(f.ii);
    d = m * V::same(f.md);
    c = deletion * V::same(f.dd);
    visit(q, m, i);
    m.store(out);
    i.store(out + 2 * W);
  }
  sum = finish_deletions<V, kSum>(t, c, bound, sum, current + W);
  return kSum ? group_sum(sum) : sum;
}

template <class V>
HWY_INLINE void scale_row(float* row, int vectors, V factor) {
  for (int j = 0; j < vectors; ++j) {
    float* const cell = row + j * kWidth<V>;
    (V::load(cell) * factor).store(cell);
  }
}

// Computes a Forward row's special states from its E, and rescales `row` if E is too large.
template <class V>
HWY_INLINE void forward_specials(Specials<V>& s, const Moves<V>& moves, V E, V ec, V ej, float* row,
                                 int Q) {
  s.E = E;
  s.N = s.N * moves.loop;
  s.C = s.C * moves.loop + E * ec;
  s.J = s.J * moves.loop + E * ej;
  s.B = s.J * moves.move + s.N * moves.move;
  const V one = V::all(1.0f), limit = V::all(kRescaleAbove);
  s.scale = one;
  if (any_greater(E, limit)) [[unlikely]] {
    // Groups that are not rescaled divide and multiply by one, which changes nothing.
    s.scale = choose(greater(E, limit), E, one);
    s.divide();
    scale_row(row, 3 * Q, one / s.scale);
  }
}

template <class V>
void forward(const Tables& t, Lanes& lanes, int first, int last, float ec, float ej, float* cells,
             std::size_t row_stride) {
  const int Q = t.Q;
  LaneCursor at(lanes, first - 1);
  auto moves = Moves<V>::of(at);
  auto s = first > 0 ? Specials<V>::load(lanes.forward_row(first - 1)) : Specials<V>{};
  const V vec = V::all(ec), vej = V::all(ej);
  const auto keep = [](int, V&, V&) HWY_ATTR {};
  for (int r = first; r <= last; ++r) {
    float* const row = cells + r * row_stride;
    float* const specials = lanes.forward_row(r);
    if (r == 0) {
      std::memset(row, 0, static_cast<std::size_t>(Q) * 3 * kWidth<V> * sizeof(float));
      s.E = s.N = s.J = s.B = s.C = V::zero();
      s.scale = V::all(1.0f);
    } else {
      const V E = forward_row<V, true>(t, Emissions<V>(t, lanes, r), s.B,
                                       s.B * deletion_bounds<V>(lanes, r), s.scale,
                                       row - row_stride, row, keep);
      forward_specials(s, moves, E, vec, vej, row, Q);
    }
    s.store(specials);
    at_borders(lanes.borders[r], [&](int g) HWY_ATTR {
      const Job* const job = at.next(g);
      moves.set(g, job);
      fill_group<V>(row, 3 * Q, g, 0.0f);
      SpecialRows::put(job ? SpecialRow{0.0f, 1.0f, 0.0f, job->move, 0.0f, 1.0f} : kNoRow,
                       V::kGroups, specials + g * kLanes);
      s = Specials<V>::load(specials);
    });
  }
}

// Runs the deletion passes over a Backward row after the first, which has left `c` at stripe 0.
template <class V>
HWY_INLINE void finish_backward_deletions(const Tables& t, V c, V bound, float* deletions) {
  const BackwardStripe* const stripe = t.backward.data();
  for (int pass = 1; pass < kLanes; ++pass) {
    c = c.down();
    if (!any_greater(c, bound)) return;
    int q = t.Q - 1;
    while (q >= 0) {
      const int end = std::max(q - kCheckEvery, -1);
      for (; q > end; --q) {
        float* const cell = deletions + q * kWidth<V>;
        c = c * V::same(stripe[q].dd);
        (V::load(cell) + c).store(cell);
      }
      if (!any_greater(c, bound)) break;
    }
    if (q >= 0) return;
  }
}

// Sums by lane the terms of B for the row before the one whose emitted matches are given.
template <class V>
HWY_INLINE V begin_terms(const Tables& t, const float* row) {
  V sum = V::zero();
  for (int q = t.Q - 1; q >= 0; --q)
    sum = sum + V::load(row + q * 2 * kWidth<V>) * V::same(t.backward[q].bm);
  return sum;
}

// Computes a row of Backward: M and I of row i+1 give those of row i, times `inverse`. E(i) is
// given. The first pass (`kEmits`) keeps emitted matches, i.e. M(i) times the odds of residue i,
// may overwrite row i+1, and returns the terms of B(i-1); `emission` belongs to residue i. Later
// passes keep M, and `emission` belongs to residue i+1. `copy`: receives M and I, or null.
template <class V, bool kEmits>
HWY_INLINE V backward_row(const Tables& t, const Emissions<V>& emission, V E, V inverse,
                          const float* next, float* row, float* deletions, float* copy = nullptr) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const BackwardStripe* const stripe = t.backward.data();
  const auto emitted = [&](int q) HWY_ATTR {
    const V m = V::load(next + q * 2 * W);
    return kEmits ? m : m * emission[q];
  };
  V mp = emitted(0).down();
  V c = V::zero();
  V v = (emitted(1) * V::same(stripe->dm) + E).down();
  for (int q = Q - 1; q >= 0; --q) {
    const BackwardStripe& b = stripe[q];
    float* const out = row + q * 2 * W;
    const V ip = V::load(next + q * 2 * W + W);
    const V m = emitted(q);
    ((ip * V::same(b.ii) + mp * V::same(b.im)) * inverse).store(out + W);
    (ip * V::same(b.mi) + mp * V::same(b.mm) + E).store(out);
    c = v * V::same(b.dd);
    v = mp * V::same(b.dm) + (c + E);
    v.store(deletions + q * W);
    mp = m;
  }
  finish_backward_deletions(t, c, E * V::all(t.backward_bound), deletions);
  c = V::load(deletions).down();
  V sum = V::zero();
  for (int q = Q - 1; q >= 0; --q) {
    float* const cell = row + q * 2 * W;
    V m = (V::load(cell) + c * V::same(stripe[q].md)) * inverse;
    if (copy != nullptr) {
      m.store(copy + q * 2 * W);
      V::load(cell + W).store(copy + q * 2 * W + W);
    }
    if constexpr (kEmits) {
      m = m * emission[q];
      sum = sum + m * V::same(stripe[q].bm);
    }
    m.store(cell);
    c = V::load(deletions + q * W);
  }
  return sum;
}

// Row 0 of a job, which has only B and N, from the emitted matches and N of row 1.
template <class V>
HWY_INLINE SpecialRow backward_row_zero(const Tables& t, const Job& job, const float* cells,
                                        float N) {
  using One = Groups<1>;
  One sum = One::zero();
  for (int q = 0; q < t.Q; ++q) {
    const One m = One::load(cells + q * 2 * kWidth<V> + job.group * kLanes);
    sum = sum + m * One::load(t.backward[q].bm);
  }
  const float B = group_value(group_sum(sum), 0);
  return {0.0f, B * job.move + N * job.loop, 0.0f, B, 0.0f, 1.0f};
}

// A Backward row uses Forward's scale factors until B grows too large, and its own from there on.
// `own`: all ones in groups for which this has happened.
template <class V>
HWY_INLINE V backward_scale(V own, V B, V forward_scale) {
  const V limit = V::all(kRescaleAbove);
  return choose(own, choose(greater(B, limit), B, V::all(1.0f)), forward_scale);
}
template <class V>
HWY_INLINE void note_own_scale(const LaneCursor& at, V B) {
  for (int g = 0; g < V::kGroups; ++g) {
    if (at[g] && group_value(B, g) > kOwnScaleAbove) at[g]->own_scale = true;
  }
}
template <class V>
HWY_INLINE V own_scales(const LaneCursor& at) {
  V own = V::zero();
  for (int g = 0; g < V::kGroups; ++g) set_group(own, g, at[g] && at[g]->own_scale ? 1.0f : 0.0f);
  return greater(own, V::zero());
}

// Moves on to the jobs that end in the row before a border. Returns their moves to T, and zero for
// other groups.
template <class V>
HWY_INLINE V begin_backward(unsigned borders, LaneCursor& at, Moves<V>& moves) {
  V begins = V::zero();
  at_borders(borders, [&](int g) HWY_ATTR {
    Job* const job = at.previous(g);
    moves.set(g, job);
    if (job != nullptr) set_group(begins, g, job->move);
  });
  return begins;
}

template <class V>
HWY_INLINE void clear_pairs(const Tables& t, float* row) {
  std::memset(row, 0, static_cast<std::size_t>(t.Q) * 2 * kWidth<V> * sizeof(float));
}

// Computes rows last to first of Backward with emitted matches, all in `row` (see backward_row()),
// which holds row last+1 at the start. M and I of row r are copied to copy_of(r).
template <class V, typename CopyOf>
HWY_INLINE void backward_rows(const Tables& t, Lanes& lanes, int last, int first, float ec,
                              float ej, float* row, float* deletions, const CopyOf& copy_of) {
  const int Q = t.Q;
  const V one = V::all(1.0f), zero = V::zero();
  LaneCursor at(lanes, last + 1);
  auto moves = Moves<V>::of(at);
  V own = own_scales<V>(at);
  Specials<V> s{zero, zero, zero, zero, zero, one};
  V terms = zero;  // for B of the next row
  if (last + 1 < lanes.rows) {
    s = Specials<V>::load(lanes.backward_row(last + 1));
    terms = begin_terms<V>(t, row);
  }
  for (int r = last; r >= first; --r) {
    float* const copy = copy_of(r);
    if (r + 1 == lanes.rows) {
      clear_pairs<V>(t, row);
      if (copy != nullptr) clear_pairs<V>(t, copy);
      s.store(lanes.backward_row(r));
      continue;
    }
    const unsigned ends = lanes.borders[r + 1], zeros = lanes.borders[r];
    V begins = zero;
    if (ends != 0) {
      begins = begin_backward(ends, at, moves);
      at_borders(ends, [&](int g) HWY_ATTR {
        if (at[g]) at[g]->own_scale = false;
      });
      own = own_scales<V>(at);
    }
    SpecialRow row_zero[V::kGroups];
    at_borders(zeros, [&](int g) HWY_ATTR {
      const Job* const job = at[g];
      row_zero[g] =
          job && job->L > 0 ? backward_row_zero<V>(t, *job, row, group_value(s.N, g)) : kNoRow;
    });
    s.B = group_sum(terms);
    s.C = s.C * moves.loop + begins;
    s.J = s.B * moves.move + s.J * moves.loop;
    s.N = s.B * moves.move + s.N * moves.loop;
    s.E = s.C * V::all(ec) + s.J * V::all(ej);
    if (any_greater(s.B, V::all(kOwnScaleAbove))) [[unlikely]] {
      note_own_scale(at, s.B);
      own = own_scales<V>(at);
    }
    s.scale = backward_scale(own, s.B, Specials<V>::load(lanes.forward_row(r)).scale);
    terms = backward_row<V, true>(t, Emissions<V>(t, lanes, r), s.E, one / s.scale, row, row,
                                  deletions, copy);
    if (any_greater(s.scale, one)) s.divide();
    s.store(lanes.backward_row(r));
    at_borders(zeros, [&](int g) HWY_ATTR {
      SpecialRows::put(row_zero[g], V::kGroups, lanes.backward_row(r) + g * kLanes);
      for (V* const state : {&s.E, &s.N, &s.J, &s.B, &s.C, &terms}) set_group(*state, g, 0.0f);
      fill_group<V>(row, 2 * Q, g, 0.0f);
      if (copy != nullptr) fill_group<V>(copy, 2 * Q, g, 0.0f);
    });
  }
}

// Recomputes M and I of rows last to first for the unihit model, with row r at rows + (r - first) *
// 2QW. `next`: those of row last+1, unless it is the end.
template <class V>
HWY_INLINE void backward_rows_again(const Tables& t, Lanes& lanes, int last, int first, float ec,
                                    const float* next, float* deletions, float* rows) {
  const std::size_t pair = t.Q * 2 * kWidth<V>;
  LaneCursor at(lanes, last + 1);
  auto moves = Moves<V>::of(at);
  for (int r = last; r >= first; --r) {
    float* const row = rows + (r - first) * pair;
    if (r + 1 == lanes.rows) {
      clear_pairs<V>(t, row);
    } else {
      const unsigned ends = lanes.borders[r + 1];
      const V begins = ends != 0 ? begin_backward(ends, at, moves) : V::zero();
      const V C = Specials<V>::load(lanes.backward_row(r + 1)).C * moves.loop + begins;
      const V scale = Specials<V>::load(lanes.backward_row(r)).scale;
      backward_row<V, false>(t, Emissions<V>(t, lanes, r + 1), C * V::all(ec), V::all(1.0f) / scale,
                             next, row, deletions);
      at_borders(lanes.borders[r], [&](int g) HWY_ATTR { fill_group<V>(row, 2 * t.Q, g, 0.0f); });
    }
    next = row;
  }
}

template <class V>
void backward(const Tables& t, Lanes& lanes, int last, int first, float ec, float ej,
              float* cells) {
  backward_rows<V>(t, lanes, last, first, ec, ej, cells, cells + t.Q * 2 * kWidth<V>,
                   [](int) HWY_ATTR -> float* { return nullptr; });
}

}  // namespace
}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
