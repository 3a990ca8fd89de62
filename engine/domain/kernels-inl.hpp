// The float recurrences over one kind of vector. Included once per Highway target, between the
// passes of foreach_target: everything here lives in the target's namespace.
#if defined(HMMJIT_DOMAIN_KERNELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_DOMAIN_KERNELS_INL_HPP
#undef HMMJIT_DOMAIN_KERNELS_INL_HPP
#else
#define HMMJIT_DOMAIN_KERNELS_INL_HPP
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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
// All ones in every group that has any bit set.
template <class V>
HWY_INLINE V group_any(V a) {
  const V pairs = a | a.swap1();
  return (pairs | pairs.swap2()).nonzero_words();
}

alignas(64) constexpr std::uint32_t kLaneMask[4][4] = {
    {~0u, 0, 0, 0}, {0, ~0u, 0, 0}, {0, 0, ~0u, 0}, {0, 0, 0, ~0u}};

// Lane r of every group from the r-th argument; all arguments hold one value per group.
template <class V>
HWY_INLINE V pack(V a, V b, V c, V d) {
  return ((a & V::same(kLaneMask[0])) | (b & V::same(kLaneMask[1]))) |
         ((c & V::same(kLaneMask[2])) | (d & V::same(kLaneMask[3])));
}

// Special states, one value per group in all its lanes.
template <class V>
struct Specials {
  V N, B, J, C, loop, move;
};

constexpr float kRescaleAbove = 10000.0f;
// A deletion chain is looked at this often for the point where it stops changing anything.
constexpr int kCheckEvery = 8;

// One row of Forward: reads `previous`, writes `current` (the same row for parsers).
// Returns E before scaling.
template <class V>
HWY_INLINE V forward_row(const Tables& t, const float* const* emission, V B, V bound,
                         const float* previous, float* current) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const float* last = previous + static_cast<std::size_t>(Q - 1) * 3 * W;
  V mp = V::load(last).up();
  V dp = V::load(last + W).up();
  V ip = V::load(last + 2 * W).up();
  V sum = V::zero();
  V d = V::zero();
  const ForwardStripe* stripe = t.forward.data();
  for (int q = 0; q < Q; ++q) {
    const ForwardStripe& f = stripe[q];
    const float* in = previous + static_cast<std::size_t>(q) * 3 * W;
    float* out = current + static_cast<std::size_t>(q) * 3 * W;
    V m = B * V::same(f.bm);
    m = m + mp * V::same(f.mm_in);
    m = m + ip * V::same(f.im_in);
    m = m + dp * V::same(f.dm_in);
    m = m * V::gather(emission, static_cast<std::size_t>(q) * kLanes);
    sum = sum + m;
    mp = V::load(in);
    dp = V::load(in + W);
    ip = V::load(in + 2 * W);
    m.store(out);
    d.store(out + W);
    (mp * V::same(f.mi) + ip * V::same(f.ii)).store(out + 2 * W);
    d = m * V::same(f.md);
  }

  const float* dd = t.dd.data();
  float* cells = current + W;
  V c = d.up();
  for (int q = 0; q < Q; ++q) {
    float* cell = cells + static_cast<std::size_t>(q) * 3 * W;
    const V value = c + V::load(cell);
    value.store(cell);
    c = value * V::same(dd + static_cast<std::size_t>(q) * kLanes);
  }
  // E adds the D cells in order, after all passes. The pass that turns out to be the last one
  // (nearly always the first) does so on the way.
  const V matches = sum;
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
        float* cell = cells + static_cast<std::size_t>(q) * 3 * W;
        const V old = V::load(cell);
        const V value = c + old;
        value.store(cell);
        sum = value + sum;
        changed = changed | (value ^ old);
        c = c * V::same(dd + static_cast<std::size_t>(q) * kLanes);
      }
      if (!any_greater(c, bound)) break;
    }
    summed = q;
    if (q < Q) break;
    // Longer models stop after a pass without effect; that changes what a later pass would add.
    if (t.M >= 100) c = c & group_any(changed);
  }
  for (int q = summed; q < Q; ++q) {
    sum = V::load(cells + static_cast<std::size_t>(q) * 3 * W) + sum;
  }
  return group_sum(sum);
}

template <class V>
HWY_INLINE void scale_row(float* row, int Q, V factor) {
  constexpr int W = kWidth<V>;
  for (int j = 0; j < 3 * Q; ++j) {
    float* cell = row + static_cast<std::size_t>(j) * W;
    (V::load(cell) * factor).store(cell);
  }
}

// Special states of a Forward row from its E; rescales `row` where E asks for it. On return E and
// `scale` are as stored in the row.
template <class V>
HWY_INLINE void forward_specials(Specials<V>& s, V& E, V& scale, V ec, V ej, float* row, int Q) {
  s.N = s.N * s.loop;
  s.C = s.C * s.loop + E * ec;
  s.J = s.J * s.loop + E * ej;
  s.B = s.J * s.move + s.N * s.move;
  const V one = V::all(1.0f);
  scale = one;
  if (any_greater(E, V::all(kRescaleAbove))) [[unlikely]] {
    // Groups that are not rescaled divide and multiply by one, which changes nothing.
    scale = select_greater(E, V::all(kRescaleAbove), one);
    s.N = s.N / scale;
    s.C = s.C / scale;
    s.J = s.J / scale;
    s.B = s.B / scale;
    scale_row(row, Q, one / scale);
    E = E / scale;
  }
}

// E, N, J, B, C, scale of group g into its row of special states.
template <class V>
HWY_INLINE void store_specials(V first, V second, int g, SpecialRow* row) {
  first.store_group(g, &row->E);
  second.store_group(g, &row->C);
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
HWY_INLINE void clear_group(float* cells, int Q, int g) {
  constexpr int W = kWidth<V>;
  for (int j = 0; j < 3 * Q; ++j) {
    std::memset(cells + static_cast<std::size_t>(j) * W + g * kLanes, 0, kLanes * sizeof(float));
  }
}

constexpr SpecialRow forward_row_zero(float move) {
  return {0.0f, 1.0f, 0.0f, move, 0.0f, 1.0f, 0.0f, 0.0f};
}

// Where a parser stands: one job in each group of four lanes, its row kept in `scratch`. A group
// whose job has ended takes the next one.
template <class V>
struct ParserState {
  static constexpr int G = V::kGroups;

  ParserState(const Tables& tables, Job* all_jobs, int job_count, float* rows)
      : t(tables), jobs(all_jobs), count(job_count), scratch(rows) {
    std::memset(scratch, 0, static_cast<std::size_t>(t.Q) * 3 * kWidth<V> * sizeof(float));
  }

  // Gives group g the next job that has residues; `prepare` also sees those without.
  template <typename Prepare>
  void next_job(int g, const Prepare& prepare) {
    active[g] = nullptr;
    while (next < count && active[g] == nullptr) {
      Job& job = jobs[next++];
      prepare(job);
      if (job.L > 0) active[g] = &job;
    }
    running += active[g] != nullptr;
    emission[g] = t.match_row(kPaddingCode);
    clear_group<V>(scratch, t.Q, g);
  }
  // Special states at the end where group g starts.
  void set_specials(Specials<V>& s, int g, float N, float B) const {
    const Job* job = active[g];
    set_group(s.N, g, N);
    set_group(s.B, g, B);
    set_group(s.J, g, 0.0f);
    set_group(s.C, g, 0.0f);
    set_group(s.loop, g, job ? job->loop : 0.0f);
    set_group(s.move, g, job ? job->move : 0.0f);
  }

  const Tables& t;
  Job* jobs;
  int count;
  float* scratch;
  int next = 0, running = 0;
  Job* active[G] = {};
  int position[G] = {};
  const float* emission[G] = {};
};

template <class V>
HWY_INLINE Specials<V> no_specials() {
  return {V::zero(), V::zero(), V::zero(), V::zero(), V::zero(), V::zero()};
}

template <class V>
void forward_parser(const Tables& t, Job* jobs, int count, float ec, float ej, float* scratch) {
  constexpr int G = V::kGroups;
  ParserState<V> at(t, jobs, count, scratch);
  Specials<V> s = no_specials<V>();
  alignas(32) float bounds[kMaxGroups] = {};
  const auto start = [&](int g) HWY_ATTR {
    at.next_job(g, [](Job& job) HWY_ATTR {
      job.log_scale = 0.0f;
      job.last_c = 0.0f;
      if (job.forward) job.forward[0] = forward_row_zero(job.move);
    });
    const Job* job = at.active[g];
    at.position[g] = 0;
    bounds[g] = 0.0f;
    at.set_specials(s, g, job ? 1.0f : 0.0f, job ? job->move : 0.0f);
  };
  for (int g = 0; g < G; ++g) start(g);

  const V vec = V::all(ec);
  const V vej = V::all(ej);
  while (at.running > 0) {
    for (int g = 0; g < G; ++g) {
      if (!at.active[g]) continue;
      const int x = at.active[g]->residues[at.position[g]++];
      at.emission[g] = t.match_row(x);
      bounds[g] = t.deletion_bound[x];
    }
    V E = forward_row(t, at.emission, s.B, s.B * V::of_groups(bounds), scratch, scratch);
    V scale;
    forward_specials(s, E, scale, vec, vej, scratch, t.Q);
    const V first = pack(E, s.N, s.J, s.B);
    const V second = pack(s.C, scale, V::zero(), V::zero());
    const bool rescaled = any_greater(scale, V::all(1.0f));
    for (int g = 0; g < G; ++g) {
      Job* job = at.active[g];
      if (!job) continue;
      if (job->forward) store_specials(first, second, g, job->forward + at.position[g]);
      if (rescaled) {
        const float factor = group_value(scale, g);
        if (factor > 1.0f) job->log_scale = add_log(job->log_scale, factor);
      }
      if (at.position[g] == job->L) {
        job->last_c = group_value(s.C, g);
        --at.running;
        start(g);
      }
    }
  }
}

template <class V>
void forward_full(const Tables& t, Job* jobs, int count, float ec, float ej, float* matrix) {
  constexpr int G = V::kGroups;
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const std::size_t row = static_cast<std::size_t>(Q) * 3 * W;
  const float* const idle = t.match_row(kPaddingCode);
  const float* emission[G];
  alignas(32) float bounds[kMaxGroups] = {};
  alignas(32) float loops[kMaxGroups] = {}, moves[kMaxGroups] = {}, ones[kMaxGroups] = {};
  int longest = 0;
  for (int g = 0; g < count; ++g) {
    loops[g] = jobs[g].loop;
    moves[g] = jobs[g].move;
    ones[g] = 1.0f;
    longest = std::max(longest, jobs[g].L);
    jobs[g].log_scale = 0.0f;
    jobs[g].last_c = 0.0f;
    jobs[g].forward[0] = forward_row_zero(jobs[g].move);
  }
  Specials<V> s{V::of_groups(ones), V::of_groups(moves), V::zero(),
                V::zero(),          V::of_groups(loops), V::of_groups(moves)};
  std::memset(matrix, 0, row * sizeof(float));
  const V vec = V::all(ec);
  const V vej = V::all(ej);
  for (int i = 1; i <= longest; ++i) {
    for (int g = 0; g < G; ++g) {
      const bool on = g < count && i <= jobs[g].L;
      const int x = on ? jobs[g].residues[i - 1] : kPaddingCode;
      emission[g] = on ? t.match_row(x) : idle;
      bounds[g] = on ? t.deletion_bound[x] : 0.0f;
    }
    float* current = matrix + static_cast<std::size_t>(i) * row;
    V E = forward_row(t, emission, s.B, s.B * V::of_groups(bounds), current - row, current);
    V scale;
    forward_specials(s, E, scale, vec, vej, current, Q);
    const V first = pack(E, s.N, s.J, s.B);
    const V second = pack(s.C, scale, V::zero(), V::zero());
    const bool rescaled = any_greater(scale, V::all(1.0f));
    for (int g = 0; g < count; ++g) {
      Job& job = jobs[g];
      if (i > job.L) continue;
      store_specials(first, second, g, job.forward + i);
      if (rescaled) {
        const float factor = group_value(scale, g);
        if (factor > 1.0f) job.log_scale = add_log(job.log_scale, factor);
      }
      if (i == job.L) job.last_c = job.forward[i].C;
    }
  }
}

// One row of Backward in place: `cells` hold row i+1 and then row i before scaling; `emission`
// is that of residue i+1. `s.C` and so on hold row i+1; `starts` says by group that this is its
// last row, where C takes the value of the move to T. Returns E; B is in s.
template <class V>
HWY_INLINE V backward_row(const Tables& t, const float* const* emission, Specials<V>& s, V begins,
                          V ec, V ej, float* cells) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const BackwardStripe* stripe = t.backward.data();
  V mp = (V::load(cells) * V::gather(emission, 0)).down();
  V sum = V::zero();
  V d = V::zero();
  for (int q = Q - 1; q >= 0; --q) {
    const BackwardStripe& b = stripe[q];
    float* cell = cells + static_cast<std::size_t>(q) * 3 * W;
    const V ip = V::load(cell + 2 * W);
    const V next = V::load(cell) * V::gather(emission, static_cast<std::size_t>(q) * kLanes);
    (ip * V::same(b.ii) + mp * V::same(b.im)).store(cell + 2 * W);
    d = mp * V::same(b.dm);
    d.store(cell + W);
    (ip * V::same(b.mi) + mp * V::same(b.mm)).store(cell);
    mp = next;
    sum = sum + mp * V::same(b.bm);
  }
  s.B = group_sum(sum);
  // `begins` is the move to T for groups that start here, and zero for all others.
  s.C = s.C * s.loop + begins;
  s.J = s.B * s.move + s.J * s.loop;
  s.N = s.B * s.move + s.N * s.loop;
  const V E = s.C * ec + s.J * ej;

  const float* dd = t.dd.data();
  V v = (d + E).down();
  V c = V::zero();
  for (int q = Q - 1; q >= 0; --q) {
    float* cell = cells + static_cast<std::size_t>(q) * 3 * W;
    c = v * V::same(dd + static_cast<std::size_t>(q) * kLanes);
    v = V::load(cell + W) + (c + E);
    v.store(cell + W);
    (V::load(cell) + E).store(cell);
  }
  const V bound = E * V::all(t.backward_bound);
  for (int pass = 0; pass < 3; ++pass) {
    c = c.down();
    if (!any_greater(c, bound)) break;
    int q = Q - 1;
    while (q >= 0) {
      const int end = std::max(q - kCheckEvery, -1);
      for (; q > end; --q) {
        float* cell = cells + static_cast<std::size_t>(q) * 3 * W + W;
        c = c * V::same(dd + static_cast<std::size_t>(q) * kLanes);
        (V::load(cell) + c).store(cell);
      }
      if (!any_greater(c, bound)) break;
    }
    if (q >= 0) break;
  }
  const float* md = t.md.data();
  c = V::load(cells + W).down();
  for (int q = Q - 1; q >= 0; --q) {
    float* cell = cells + static_cast<std::size_t>(q) * 3 * W;
    (V::load(cell) + c * V::same(md + static_cast<std::size_t>(q) * kLanes)).store(cell);
    c = V::load(cell + W);
  }
  return E;
}

// Row 0 of one group: only B and N are left. `cells` hold its row 1.
template <class V>
HWY_INLINE SpecialRow backward_row_zero(const Tables& t, const Job& job, const float* cells, int g,
                                        float N) {
  constexpr int W = kWidth<V>;
  const float* emission = t.match_row(job.residues[0]);
  using One = Groups<1>;
  One sum = One::zero();
  for (int q = 0; q < t.Q; ++q) {
    const One m = One::load(cells + static_cast<std::size_t>(q) * 3 * W + g * kLanes);
    const One product = m * One::load(emission + static_cast<std::size_t>(q) * kLanes) *
                        One::load(t.backward[static_cast<std::size_t>(q)].bm);
    sum = sum + product;
  }
  const float B = group_value(group_sum(sum), 0);
  return {0.0f, B * job.move + N * job.loop, 0.0f, B, 0.0f, 1.0f, 0.0f, 0.0f};
}

constexpr float kOwnScaleAbove = 1.0e16f;

// Scale factors of a Backward row; applies them to specials and cells. Returns them by group.
template <class V>
HWY_INLINE V backward_scale(Specials<V>& s, V& E, Job* const* active, const int* position,
                            float* cells, int Q) {
  constexpr int G = V::kGroups;
  alignas(32) float factors[kMaxGroups];
  for (float& factor : factors) factor = 1.0f;
  alignas(64) float begin[kWidth<V>];
  s.B.store(begin);
  bool any = false;
  for (int g = 0; g < G; ++g) {
    Job* job = active[g];
    if (!job) continue;
    const float B = begin[g * kLanes];
    if (B > kOwnScaleAbove) [[unlikely]]
      job->own_scale = true;
    factors[g] = job->own_scale ? (B > kRescaleAbove ? B : 1.0f) : job->forward[position[g]].scale;
    any |= factors[g] > 1.0f;
  }
  const V scale = V::of_groups(factors);
  if (any) {
    const V one = V::all(1.0f);
    E = E / scale;
    s.N = s.N / scale;
    s.J = s.J / scale;
    s.B = s.B / scale;
    s.C = s.C / scale;
    scale_row(cells, Q, one / scale);
  }
  return scale;
}

template <class V>
void backward_parser(const Tables& t, Job* jobs, int count, float ec, float ej, float* scratch) {
  constexpr int G = V::kGroups;
  ParserState<V> at(t, jobs, count, scratch);
  Specials<V> s = no_specials<V>();
  alignas(32) float begins[kMaxGroups] = {};
  const auto start = [&](int g) HWY_ATTR {
    at.next_job(g, [](Job& job) HWY_ATTR { job.own_scale = false; });
    const Job* job = at.active[g];
    at.position[g] = job ? job->L : 0;
    begins[g] = job ? job->move : 0.0f;
    at.set_specials(s, g, 0.0f, 0.0f);
  };
  for (int g = 0; g < G; ++g) start(g);

  const V vec = V::all(ec);
  const V vej = V::all(ej);
  while (at.running > 0) {
    V E = backward_row(t, at.emission, s, V::of_groups(begins), vec, vej, scratch);
    const V scale = backward_scale(s, E, at.active, at.position, scratch, t.Q);
    const V first = pack(E, s.N, s.J, s.B);
    const V second = pack(s.C, scale, V::zero(), V::zero());
    for (int g = 0; g < G; ++g) {
      Job* job = at.active[g];
      begins[g] = 0.0f;
      if (!job) continue;
      const int i = at.position[g]--;
      store_specials(first, second, g, job->backward + i);
      at.emission[g] = t.match_row(job->residues[i - 1]);
      if (i == 1) {
        job->backward[0] = backward_row_zero<V>(t, *job, scratch, g, job->backward[1].N);
        --at.running;
        start(g);
      }
    }
  }
}

// Parts are of one job: four lanes.
void forward_part(const Tables& t, Job& job, int first, int last, float ec, float ej, float* cells,
                  SpecialRow* rows) {
  using V = Groups<1>;
  Specials<V> s{V::all(rows->N), V::all(rows->B),  V::all(rows->J),
                V::all(rows->C), V::all(job.loop), V::all(job.move)};
  const V vec = V::all(ec);
  const V vej = V::all(ej);
  for (int i = first + 1; i <= last; ++i) {
    const int x = job.residues[i - 1];
    const float* const emission[] = {t.match_row(x)};
    V E = forward_row(t, emission, s.B, s.B * V::all(t.deletion_bound[x]), cells, cells);
    V scale;
    forward_specials(s, E, scale, vec, vej, cells, t.Q);
    store_specials(pack(E, s.N, s.J, s.B), pack(s.C, scale, V::zero(), V::zero()), 0,
                   rows + (i - first));
    const float factor = rows[i - first].scale;
    if (factor > 1.0f) job.log_scale = add_log(job.log_scale, factor);
  }
}

void backward_part(const Tables& t, Job& job, int first, int last, float ec, float ej, float* cells,
                   const SpecialRow& next, SpecialRow* rows) {
  using V = Groups<1>;
  Specials<V> s{V::all(next.N), V::zero(),        V::all(next.J),
                V::all(next.C), V::all(job.loop), V::all(job.move)};
  const V vec = V::all(ec);
  const V vej = V::all(ej);
  Job* const active[] = {&job};
  for (int i = last; i > first; --i) {
    const bool end = i == job.L;
    const float* const emission[] = {t.match_row(end ? kPaddingCode : job.residues[i])};
    const int position[] = {i - first};
    V E = backward_row(t, emission, s, V::all(end ? job.move : 0.0f), vec, vej, cells);
    const V scale = backward_scale(s, E, active, position, cells, t.Q);
    store_specials(pack(E, s.N, s.J, s.B), pack(s.C, scale, V::zero(), V::zero()), 0,
                   rows + (i - first));
  }
  if (first == 0) rows[0] = backward_row_zero<V>(t, job, cells, 0, rows[1].N);
}

template <class V>
void backward_product(const Tables& t, Job* jobs, int count, float ec, float ej, float* matrix,
                      float* scratch) {
  constexpr int G = V::kGroups;
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const std::size_t row = static_cast<std::size_t>(Q) * 3 * W;
  std::memset(scratch, 0, row * sizeof(float));
  const float* const idle = t.match_row(kPaddingCode);
  const float* emission[G];
  alignas(32) float begins[kMaxGroups] = {};
  alignas(32) float loops[kMaxGroups] = {}, moves[kMaxGroups] = {};
  Job* active[G] = {};
  int position[G] = {};
  int longest = 0;
  for (int g = 0; g < count; ++g) {
    loops[g] = jobs[g].loop;
    moves[g] = jobs[g].move;
    longest = std::max(longest, jobs[g].L);
    jobs[g].own_scale = false;
  }
  Specials<V> s{V::zero(), V::zero(),           V::zero(),
                V::zero(), V::of_groups(loops), V::of_groups(moves)};
  const V vec = V::all(ec);
  const V vej = V::all(ej);
  for (int i = longest; i >= 1; --i) {
    for (int g = 0; g < G; ++g) {
      active[g] = g < count && i <= jobs[g].L ? jobs + g : nullptr;
      position[g] = i;
      begins[g] = active[g] && i == jobs[g].L ? moves[g] : 0.0f;
      emission[g] = active[g] && i < jobs[g].L ? t.match_row(jobs[g].residues[i]) : idle;
    }
    V E = backward_row(t, emission, s, V::of_groups(begins), vec, vej, scratch);
    const V scale = backward_scale(s, E, active, position, scratch, Q);
    float* product = matrix + static_cast<std::size_t>(i) * row;
    for (int q = 0; q < Q; ++q) {
      const std::size_t at = static_cast<std::size_t>(q) * 3 * W;
      (V::load(product + at) * V::load(scratch + at)).store(product + at);
      (V::load(product + at + 2 * W) * V::load(scratch + at + 2 * W)).store(product + at + 2 * W);
    }
    const V first = pack(E, s.N, s.J, s.B);
    const V second = pack(s.C, scale, V::zero(), V::zero());
    for (int g = 0; g < count; ++g) {
      if (active[g]) store_specials(first, second, g, jobs[g].backward + i);
    }
  }
  for (int g = 0; g < count; ++g) {
    if (jobs[g].L > 0) {
      jobs[g].backward[0] = backward_row_zero<V>(t, jobs[g], scratch, g, jobs[g].backward[1].N);
    }
  }
}

// Factor of row i by group, zero past the end of a job.
template <class V>
HWY_INLINE V row_factor(const Job* jobs, int count, int i) {
  alignas(32) float factors[kMaxGroups] = {};
  for (int g = 0; g < count; ++g) factors[g] = i <= jobs[g].L ? jobs[g].factor[i] : 0.0f;
  return V::of_groups(factors);
}

template <class V>
void posterior_sums(const Tables& t, Job* jobs, int count, const float* matrix) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const std::size_t row = static_cast<std::size_t>(Q) * 3 * W;
  int longest = 0;
  for (int g = 0; g < count; ++g) longest = std::max(longest, jobs[g].L);
  // The sums of eight stripes stay in registers while the rows go by.
  constexpr int kBlock = 4;
  for (int q0 = 0; q0 < Q; q0 += kBlock) {
    const int n = std::min(kBlock, Q - q0);
    V match[kBlock], insert[kBlock];
    for (int j = 0; j < kBlock; ++j) match[j] = insert[j] = V::zero();
    for (int i = 1; i <= longest; ++i) {
      const V factor = row_factor<V>(jobs, count, i);
      const float* cell =
          matrix + static_cast<std::size_t>(i) * row + static_cast<std::size_t>(q0) * 3 * W;
      for (int j = 0; j < n; ++j, cell += 3 * W) {
        match[j] = match[j] + V::load(cell) * factor;
        insert[j] = insert[j] + V::load(cell + 2 * W) * factor;
      }
    }
    for (int j = 0; j < n; ++j) {
      for (int g = 0; g < count; ++g) {
        const auto at = static_cast<std::size_t>(q0 + j) * kLanes;
        match[j].store_group(g, jobs[g].weight_match + at);
        insert[j].store_group(g, jobs[g].weight_insert + at);
      }
    }
  }
}

template <class V>
void optimal_accuracy(const Tables& t, Job* jobs, int count, const float* product,
                      float* accuracy) {
  constexpr int W = kWidth<V>;
  const int Q = t.Q;
  const std::size_t row = static_cast<std::size_t>(Q) * 3 * W;
  const V none = V::all(-std::numeric_limits<float>::infinity());
  // What enters lane 0 from the left is impossible.
  const V edge = none & V::same(kLaneMask[0]);
  int longest = 0;
  for (int g = 0; g < count; ++g) longest = std::max(longest, jobs[g].L);
  for (int j = 0; j < 3 * Q; ++j) none.store(accuracy + static_cast<std::size_t>(j) * W);

  const MaskStripe* stripe = t.mask.data();
  alignas(32) float begins[kMaxGroups] = {};
  for (int i = 1; i <= longest; ++i) {
    const float* previous = accuracy + static_cast<std::size_t>(i - 1) * row;
    float* current = accuracy + static_cast<std::size_t>(i) * row;
    const float* posterior = product + static_cast<std::size_t>(i) * row;
    const V factor = row_factor<V>(jobs, count, i);
    for (int g = 0; g < count; ++g) {
      begins[g] = i <= jobs[g].L ? jobs[g].accuracy[i - 1].B : 0.0f;
    }
    const V B = V::of_groups(begins);
    const float* last = previous + static_cast<std::size_t>(Q - 1) * 3 * W;
    V mp = V::load(last).up() | edge;
    V dp = V::load(last + W).up() | edge;
    V ip = V::load(last + 2 * W).up() | edge;
    V best = none;
    V d = none;
    for (int q = 0; q < Q; ++q) {
      const MaskStripe& mask = stripe[q];
      const std::size_t at = static_cast<std::size_t>(q) * 3 * W;
      V m = V::same(mask.bm) & B;
      m = max(m, V::same(mask.mm_in) & mp);
      m = max(m, V::same(mask.im_in) & ip);
      m = max(m, V::same(mask.dm_in) & dp);
      m = m + V::load(posterior + at) * factor;
      best = max(best, m);
      mp = V::load(previous + at);
      dp = V::load(previous + at + W);
      ip = V::load(previous + at + 2 * W);
      m.store(current + at);
      d.store(current + at + W);
      (max(V::same(mask.mi) & mp, V::same(mask.ii) & ip) + V::load(posterior + at + 2 * W) * factor)
          .store(current + at + 2 * W);
      d = V::same(mask.md) & m;
    }
    // Deletions add nothing, so this is a running maximum: passes end when one changes nothing.
    V c = d.up() | edge;
    for (int q = 0; q < Q; ++q) {
      float* cell = current + static_cast<std::size_t>(q) * 3 * W + W;
      const V value = max(c, V::load(cell));
      value.store(cell);
      best = max(best, value);
      c = V::same(stripe[q].dd) & value;
    }
    for (int pass = 1; pass < kLanes; ++pass) {
      c = c.up() | edge;
      bool changed = false;
      for (int q = 0; q < Q; ++q) {
        float* cell = current + static_cast<std::size_t>(q) * 3 * W + W;
        const V old = V::load(cell);
        if (!any_greater(c, old)) break;
        changed = q == Q - 1;
        const V value = max(c, old);
        value.store(cell);
        best = max(best, value);
        c = V::same(stripe[q].dd) & value;
      }
      if (!changed) break;
    }
    best = group_max(best);
    for (int g = 0; g < count; ++g) {
      if (i <= jobs[g].L) jobs[g].accuracy[i].E = group_value(best, g);
    }
  }
}

inline std::int32_t smaller(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

// The rule of clustering.cpp in integers: for lengths below 2^22 the float quotient a/b is at
// least 0.8f exactly when 5a >= 4b, because 4/5 itself rounds to 0.8f and the next smaller
// quotient is further away than half a unit of it.
void link_segments(const SegmentArrays& s, std::size_t count, std::int32_t i, std::int32_t j,
                   std::int32_t k, std::int32_t m, std::uint8_t* __restrict linked) {
  const std::int32_t* const __restrict si = s.i;
  const std::int32_t* const __restrict sj = s.j;
  const std::int32_t* const __restrict sk = s.k;
  const std::int32_t* const __restrict sm = s.m;
  for (std::size_t p = 0; p < count; ++p) {
    const std::int32_t residues = smaller(sj[p], j) - larger(si[p], i) + 1;
    const std::int32_t shorter = smaller(sj[p] - si[p], j - i) + 1;
    const std::int32_t nodes = smaller(sm[p], m) - larger(sk[p], k);
    const std::int32_t fewer = smaller(sm[p] - sk[p], m - k) + 1;
    // |shift| <= 4 as one unsigned comparison.
    const auto first = static_cast<std::uint32_t>((si[p] - sk[p]) - (i - k) + 4);
    const auto last = static_cast<std::uint32_t>((sj[p] - sm[p]) - (j - m) + 4);
    const int close = (first <= 8u) | (last <= 8u);
    linked[p] =
        static_cast<std::uint8_t>((5 * residues >= 4 * shorter) & (5 * nodes >= 4 * fewer) & close);
  }
}

template <class V>
constexpr Kernels make_kernels(const char* name) {
  return {name,
          V::kGroups,
          &forward_parser<V>,
          &backward_parser<V>,
          &forward_part,
          &backward_part,
          &forward_full<V>,
          &backward_product<V>,
          &posterior_sums<V>,
          &optimal_accuracy<V>,
          &link_segments};
}

}  // namespace
}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
