// Envelopes without matrices, for the unihit model. Forward keeps special states; Backward keeps
// these and the M and I cells of every block_rows-th row (checkpoints: Grice, Hughey & Speck 1997,
// CABIOS 13:45). A third, ascending pass recomputes Backward by blocks from the checkpoints and
// Forward row by row; the same loop over stripes computes posteriors, their sums, and optimal
// accuracy, whose choices are kept. Included once per Highway target.
#if defined(HMMJIT_DOMAIN_ENVELOPE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_DOMAIN_ENVELOPE_INL_HPP
#undef HMMJIT_DOMAIN_ENVELOPE_INL_HPP
#else
#define HMMJIT_DOMAIN_ENVELOPE_INL_HPP
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "domain/forward_backward-inl.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hmmjit::domain::HWY_NAMESPACE {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Size of a block of Backward rows, which should fit in a cache near the core.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

// Rows of cells; `pair`: number of floats in a row of M and I.
template <class V>
struct EnvelopeCells {
  EnvelopeCells(const Tables& t, const Lanes& lanes, EnvelopeSpace& space) {
    const std::size_t vectors = t.Q * kWidth<V>;
    pair = 2 * vectors;
    const auto rows = static_cast<std::size_t>(lanes.rows);
    const std::size_t in_block = std::clamp<std::size_t>(kBlockBytes / (pair * sizeof(float)), 4,
                                                         std::max(rows, std::size_t{4}));
    space.block_rows = block_rows = static_cast<int>(in_block);
    float* at = space.cells.ensure(4 * vectors + 4 * pair + (in_block + rows / in_block) * pair);
    const auto take = [&](std::size_t floats) { return std::exchange(at, at + floats); };
    forward = take(3 * vectors);
    deletions = take(vectors);
    for (float*& of_turn : accuracy) of_turn = take(pair);
    row = take(pair);
    sums = take(pair);
    block = take(in_block * pair);
    checkpoints = at;
  }
  float* in_block(int r, int first) const { return block + (r - first) * pair; }
  /// Row r, the first of a block other than the first block.
  float* checkpoint(int r) const {
    return checkpoints + static_cast<std::size_t>(r / block_rows - 1) * pair;
  }

  std::size_t pair;
  int block_rows;
  float *forward, *deletions, *accuracy[2], *row, *sums, *block, *checkpoints;
};

template <class V>
void envelope_backward(const Tables& t, Lanes& lanes, float ec, EnvelopeSpace& space) {
  const EnvelopeCells<V> cells(t, lanes, space);
  backward_rows<V>(t, lanes, lanes.rows - 1, 0, ec, 0.0f, cells.row, cells.deletions,
                   [&](int r) HWY_ATTR {
                     return r < cells.block_rows        ? cells.in_block(r, 0)
                            : r % cells.block_rows == 0 ? cells.checkpoint(r)
                                                        : nullptr;
                   });
}

// Null2 odds of the K residues by expectation, from `sums` of one group's posteriors over the rows.
template <class V>
void null2_by_expectation(const Tables& t, const float* sums, int L, float n, float c,
                          float* odds) {
  using One = Groups<1>;
  const float norm = inverse_of(static_cast<float>(L));
  const One factor = One::all(norm);
  One sum[kMaxBases];
  for (One& of_residue : sum) of_residue = One::zero();
  for (int q = 0; q < t.Q; ++q) {
    const float* const cell = sums + q * 2 * kWidth<V>;
    const One match = One::load(cell) * factor;
    const One insert = One::load(cell + kWidth<V>) * factor;
    for (int x = 0; x < t.K; ++x) {
      const One emission = One::load(t.match_row(x) + q * kLanes);
      sum[x] = (sum[x] + match * emission) + insert;
    }
  }
  // The unihit model emits nothing from J.
  const float outside = n * norm + c * norm;
  for (int x = 0; x < t.K; ++x) odds[x] = group_value(group_sum(sum[x]), 0) + outside;
}

// The node at which group g's path leaves a row of optimal accuracy: the last match with the
// largest value (no deletion in the row exceeds it). 0 for a cell without a node.
template <class V>
int exit_node(const Tables& t, const float* row, int g, float value) {
  for (int q = t.Q - 1; q >= 0; --q) {
    const float* const cell = row + q * 2 * kWidth<V> + g * kLanes;
    for (int r = kLanes - 1; r >= 0; --r) {
      if (cell[r] != value) continue;
      const int k = r * t.Q + q + 1;
      return k <= t.M ? k : 0;
    }
  }
  return 0;
}

// The value of a transition into a cell of optimal accuracy, and its rank in comparisons. If the
// transition does not exist, it has value 0 and ranks last (Tables::plain: all transitions exist).
template <class V>
struct Way {
  V value, rank;
};
template <bool kPlain, class V>
HWY_INLINE Way<V> way(const std::uint32_t* exists, V value) {
  if constexpr (kPlain) return {value, value};
  const V mask = V::same(exists);
  return {mask & value, choose(mask, value, V::all(kNever))};
}
// The larger of both; sets the bits of `choice` where that is the second.
template <class V>
HWY_INLINE Way<V> better(Way<V> a, Way<V> b, std::uint8_t* choice) {
  store_greater(b.rank, a.rank, choice);
  return {max(a.value, b.value), max(a.rank, b.rank)};
}

// Third pass over the rows. Special states have one value per group, in all its lanes.
template <class V, bool kPlain, bool kSums>
class Decoder {
 public:
  Decoder(const Tables& t, Lanes& lanes, float ec, EnvelopeSpace& space)
      : t_(t), lanes_(lanes), ec_(ec), space_(space), cells_(t, lanes, space), at_(lanes, -1) {}

  void run() {
    const int rows = lanes_.rows;
    space_.choices.ensure(static_cast<std::size_t>(rows) * choice_row());
    HotCells& hot = space_.hot;
    hot.count = 0;
    hot.row_begin.assign(1, 0);
    if (hot.above < 0) {  // all cells
      const std::size_t all = static_cast<std::size_t>(rows) * 2 * static_cast<std::size_t>(t_.Q);
      hot.cells.ensure(all);
      hot.values.ensure(all * W);
    }
    std::memset(cells_.forward, 0, 3 * cells_.pair / 2 * sizeof(float));
    std::fill_n(cells_.accuracy[0], cells_.pair, kNever);
    std::fill_n(cells_.accuracy[1], cells_.pair, kNever);
    std::memset(cells_.sums, 0, cells_.pair * sizeof(float));
    for (int first = 0; first < rows; first += cells_.block_rows) {
      const int last = std::min(first + cells_.block_rows, rows) - 1;
      if (first > 0) {
        backward_rows_again<V>(t_, lanes_, last, first, ec_,
                               last + 1 < rows ? cells_.checkpoint(last + 1) : nullptr,
                               cells_.deletions, cells_.block);
      }
      for (int r = first; r <= last; ++r) step(r, cells_.in_block(r, first));
    }
  }

 private:
  static constexpr int W = kWidth<V>;
  using Bits = std::uint32_t;  // as store_greater writes them
  static constexpr Bits bits_of(int g) { return Bits{0xf} << V::mask_bit(g); }

  std::size_t choice_row() const {
    return static_cast<std::size_t>(t_.Q * kChoices * V::kMaskBytes);
  }

  void step(int r, const float* backward) {
    const unsigned borders = lanes_.borders[r];
    at_borders(borders, [&](int g) HWY_ATTR { finish(g, r - 1); });
    if (r > 0) row(r, backward);
    space_.hot.row_begin.push_back(space_.hot.count);
    at_borders(borders, [&](int g) HWY_ATTR { begin(g, r); });
  }

  // Called after the last row of group g's job.
  void finish(int g, int last) {
    Job* const job = at_[g];
    if (job == nullptr) return;
    DecodedEnvelope& out = job->decoded;
    out.sound = !std::isinf(group_value(scale_, g));
    out.accuracy = group_value(C_, g);
    if (candidates_ & bits_of(g)) note_exit(g, last, previous());
    candidates_ &= ~bits_of(g);
    if constexpr (kSums) {
      null2_by_expectation<V>(t_, cells_.sums + g * kLanes, job->L, group_value(sum_n_, g),
                              group_value(sum_c_, g), out.null2.data());
    }
  }

  // Called at row 0 of group g's next job.
  void begin(int g, int r) {
    Job* const job = at_.next(g);
    fill_group<V>(cells_.forward, 3 * t_.Q, g, 0.0f);
    if constexpr (kSums) fill_group<V>(cells_.sums, 2 * t_.Q, g, 0.0f);
    fill_group<V>(previous(), 2 * t_.Q, g, kNever);
    candidates_ &= ~bits_of(g);
    for (V* const v : {&N_, &sum_n_, &sum_c_}) set_group(*v, g, 0.0f);
    for (V* const v : {&C_, &enters_, &last_deletion_}) set_group(*v, g, kNever);
    const float N = job ? lanes_.backward_of(*job)[0].N : 1.0f;
    set_group(scale_, g, inverse_of(N));
    set_group(loop_, g, job ? job->loop : 0.0f);
    own_ = own_scales<V>(at_);
    any_own_ = any_greater(own_ & V::all(1.0f), V::zero());
    if (job == nullptr) return;
    job->decoded = {};
    if (r + 1 < lanes_.rows) first_rows_ |= bits_of(g);
  }

  void note_exit(int g, int r, const float* row) {
    if (at_[g] == nullptr) return;
    DecodedEnvelope& out = at_[g]->decoded;
    out.exit_row = r - at_[g]->start;
    out.exit_node = exit_node<V>(t_, row, g, group_value(E_, g));
  }

  void row(int r, const float* backward);
  void special_states(int r, V best, V posterior_n, V posterior_c);

  float* previous() const { return cells_.accuracy[turn_]; }
  float* current() const { return cells_.accuracy[1 - turn_]; }

  const Tables& t_;
  Lanes& lanes_;
  float ec_;
  EnvelopeSpace& space_;
  EnvelopeCells<V> cells_;
  LaneCursor at_;
  int turn_ = 0;
  V loop_{}, own_{}, scale_{};  // scale_: for posteriors
  // Scale of Forward's deletions in the previous row, applied when they are read. `{}` would leave
  // a Highway vector undefined on ARM, and zero times that need not be zero.
  V scale_d_ = V::zero();
  V N_{}, C_{}, E_{};           // optimal accuracy
  V sum_n_{}, sum_c_{};         // posteriors
  // Optimal accuracy of the previous row's deletions: before the first stripe, in the last stripe.
  V enters_{}, last_deletion_{};
  bool any_own_ = false;
  Bits candidates_ = 0;  // groups whose path may end in the previous row
  Bits first_rows_ = 0;  // groups whose next row is row 1
};

// Computes Forward for the row, the posteriors, and everything derived from them.
template <class V, bool kPlain, bool kSums>
void Decoder<V, kPlain, kSums>::row(int r, const float* const backward) {
  const int Q = t_.Q;
  const V zero = V::zero(), one = V::all(1.0f), never = V::all(kNever);
  const auto before = Specials<V>::load(lanes_.forward_row(r - 1));
  const auto after = Specials<V>::load(lanes_.backward_row(r));
  const V forward_scale = Specials<V>::load(lanes_.forward_row(r)).scale;
  const V inverse = one / forward_scale;
  const V factor = scale_ * forward_scale;
  float* const sums = cells_.sums;

  // Optimal accuracy from the previous row, whose deletions are computed along the way.
  const V edge = never & V::same(kLaneMask[0]);  // enters lane 0
  const float* const from = previous();
  float* const to = current();
  const float* const last = from + static_cast<std::size_t>(Q - 1) * 2 * W;
  V mp = V::load(last).up() | edge;
  V ip = V::load(last + W).up() | edge;
  V dp = last_deletion_.up() | edge;
  V deletion = enters_;
  V best = never;                           // best match of the row
  V leaves = never, leaves_before = never;  // deletion leaving the stripe if none enters its lane
  V through = V::same(kEveryLane), through_before = through;
  const V begin = N_;  // J is never larger, as the unihit model does not enter it from E
  const MaskStripe* const mask = t_.mask.data();
  std::uint8_t* choice = space_.choices.data() + r * choice_row();
  std::uint8_t* choice_before = choice - choice_row();
  HotCells& hot = space_.hot;
  const V hot_above = V::all(hot.above);
  const std::size_t room = hot.count + 2 * static_cast<std::size_t>(Q);
  std::int32_t* hot_cell = hot.cells.grow(room, hot.count) + hot.count;
  float* hot_value = hot.values.grow(room * W, hot.count * W) + hot.count * W;
  const auto keep_if_hot = [&](int cell, V posterior) HWY_ATTR {
    if (any_greater(posterior, hot_above)) [[unlikely]] {
      *hot_cell++ = cell;
      posterior.store(hot_value);
      hot_value += W;
    }
  };

  const auto visit = [&](int q, V& match, V& insert) HWY_ATTR {
    const std::size_t at = q * 2 * W;
    match = match * inverse;
    insert = insert * inverse;
    const V posterior_m = match * V::load(backward + at) * factor;
    const V posterior_i = insert * V::load(backward + at + W) * factor;
    if constexpr (kSums) {
      (V::load(sums + at) + posterior_m).store(sums + at);
      (V::load(sums + at + W) + posterior_i).store(sums + at + W);
    }
    keep_if_hot(2 * q, posterior_m);
    keep_if_hot(2 * q + 1, posterior_i);
    const MaskStripe& m = mask[q];
    constexpr std::size_t kBytes = V::kMaskBytes;
    Way<V> best_way = way<kPlain>(m.mm_in, mp);
    best_way = better(best_way, way<kPlain>(m.im_in, ip), choice + kFromInsert * kBytes);
    best_way = better(best_way, way<kPlain>(m.dm_in, dp), choice + kFromDeletion * kBytes);
    best_way = better(best_way, way<kPlain>(m.bm, begin), choice + kFromBegin * kBytes);
    const V value = (best_way.value + posterior_m) & V::same(m.node);
    best = max(best, value);
    mp = V::load(from + at);
    ip = V::load(from + at + W);
    dp = deletion;
    const V stay =
        better(way<kPlain>(m.mi, mp), way<kPlain>(m.ii, ip), choice + kStayInsert * kBytes).value;
    deletion = better(way<kPlain>(m.md, mp), way<kPlain>(m.dd, deletion),
                      choice_before + kStayDeletion * kBytes)
                   .value;
    // Row 0 has no deletions; it is the only row whose matches are negative.
    if constexpr (!kPlain) deletion = choose(greater(zero, mp), never, deletion);
    value.store(to + at);
    (stay + posterior_i).store(to + at + W);
    leaves_before = leaves;
    if constexpr (kPlain) {
      leaves = best;
    } else {
      through_before = through;
      through = through & V::same(m.dd);
      leaves = max(V::same(m.md) & value, V::same(m.dd) & leaves);
    }
    choice += kChoices * kBytes;
    choice_before += kChoices * kBytes;
  };
  forward_row<V, false>(t_, Emissions<V>(t_, lanes_, r), before.B,
                        before.B * deletion_bounds<V>(lanes_, r), scale_d_, cells_.forward,
                        cells_.forward, visit);
  scale_d_ = inverse;
  hot.count = static_cast<std::size_t>(hot_cell - hot.cells.data());
  enters_ = leaves.up() | edge;
  for (int lane = 2; lane < kLanes; ++lane) {
    enters_ = max(leaves, through & enters_).up() | edge;
  }
  last_deletion_ = max(leaves_before, through_before & enters_);
  special_states(r, best, before.N * after.N * loop_ * scale_, before.C * after.C * loop_ * scale_);
  if (any_own_) scale_ = scale_ * choose(own_, forward_scale / after.scale, one);
}

// Updates the special states for optimal accuracy and notes where paths end: in the last row whose
// E is not less than the C that comes from the previous row.
template <class V, bool kPlain, bool kSums>
void Decoder<V, kPlain, kSums>::special_states(int r, V best, V posterior_n, V posterior_c) {
  if constexpr (kSums) {
    sum_n_ = sum_n_ + posterior_n;
    sum_c_ = sum_c_ + posterior_c;
  }
  N_ = N_ + posterior_n;
  const V E = group_max(best);
  const V stay = C_ + posterior_c;
  C_ = max(stay, E);
  Bits stays = 0;
  store_greater(stay, E, reinterpret_cast<std::uint8_t*>(&stays));
  const Bits ended = candidates_ & stays;
  for (int g = 0; ended != 0 && g < V::kGroups; ++g) {
    if (ended & bits_of(g)) note_exit(g, r - 1, previous());
  }
  candidates_ = ~stays;
  E_ = E;
  for (int g = 0; first_rows_ != 0 && g < V::kGroups; ++g) {
    if (first_rows_ & bits_of(g))
      at_[g]->decoded.first_node = exit_node<V>(t_, current(), g, group_value(E, g));
  }
  first_rows_ = 0;
  turn_ = 1 - turn_;
}

template <class V>
void decode(const Tables& t, Lanes& lanes, float ec, bool sums, EnvelopeSpace& space) {
  if (!t.plain) return Decoder<V, false, true>(t, lanes, ec, space).run();
  if (sums) return Decoder<V, true, true>(t, lanes, ec, space).run();
  Decoder<V, true, false>(t, lanes, ec, space).run();
}

}  // namespace
}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
