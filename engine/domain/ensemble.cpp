#include "domain/ensemble.hpp"

#include <algorithm>
#include <cmath>

#include "domain/four_floats.hpp"
#include "domain/null2.hpp"
#include "model/numeric.hpp"

namespace hmmjit::domain {
namespace {

// HMMER's choice: weights normalised by a compensated sum, running sum in double.
int choose_exactly(float* weights, int n, double u) {
  normalise({weights, static_cast<std::size_t>(n)});
  double norm = 0;
  for (int a = 0; a < n; ++a) norm += static_cast<double>(weights[a]);
  double sum = 0;
  for (int a = 0; a < n; ++a) {
    sum += static_cast<double>(weights[a]);
    if (u < sum / norm) return a;
  }
  return n - 1;
}

// A threshold of HMMER differs from the true running sum of the weights by less than 2^-22
// of the total (one rounding of each of up to four normalised weights). The sums made here from at
// most four floats, their quotient by the total and its product with u add less than 12 * 2^-24.
// The margin is twice the sum of both; below a total of kLeastTotal, weights may have been flushed
// to zero.
constexpr float kMargin = 2.0e-6f, kLeastTotal = 1.0e-30f;
constexpr std::uint32_t kDeviateMargin = 8600;  // the same in units of 2^-32

// Converts x in [0, 1] to a deviate in units of 2^-32.
std::uint32_t deviate_at(float x) {
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(static_cast<std::int64_t>(x * 0x1p32f), 0xffffffff));
}

// One deviate: exact in double, and rounded to float for the first comparison.
struct Deviate {
  explicit Deviate(LinearCongruential& random) : exact(random.uniform()), state(random.state()) {}
  float rounded() const { return static_cast<float>(static_cast<std::int64_t>(state)) * 0x1p-32f; }
  double exact;
  std::uint32_t state;
};

// Deviates below the result are clearly below the probability; 0 if it is NaN.
std::uint32_t clearly_below(float probability) {
  const auto limit = static_cast<std::int64_t>(probability > 0 ? probability * 0x1p32f : 0.0f);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(limit - kDeviateMargin, 0));
}

int choose_of_two(float first, float second, const Deviate& u) {
  const float total = first + second;
  const float distance = first - u.rounded() * total;
  if (std::fabs(distance) > kMargin * total) [[likely]]
    return distance > 0 ? 0 : 1;
  float weights[2] = {first, second};
  return choose_exactly(weights, 2, u.exact);
}

}  // namespace

void Ensemble::prepare(const RegionMatrix& region) {
  const ForwardTables::Tables& t = *region.tables;
  const Job& job = *region.job;
  const int M = t.M;
  const auto rows = static_cast<std::size_t>(job.L) + 1;
  offset_of_.resize(static_cast<std::size_t>(M) + 1);
  // Node 0 has no cell; the value read in its place is multiplied by a zero transition.
  offset_of_[0] = 0;
  for (int k = 1; k <= M; ++k) {
    offset_of_[k] =
        static_cast<std::int32_t>(static_cast<std::size_t>(t.stripe_of(k)) * region.layout.stripe +
                                  static_cast<std::size_t>(t.lane_of(k)));
  }
  visits_.resize(static_cast<std::size_t>(M) + 2);

  stay_c_.resize(rows);
  stay_j_.resize(rows);
  const SpecialRows& special = region.special;
  for (int i = 1; i <= job.L; ++i) {
    const float c = special[i - 1].C * job.loop;
    const float j = special[i - 1].J * job.loop;
    const float c_exit = special[i].E * region.ec * special[i].scale;
    const float j_exit = special[i].E * region.ej * special[i].scale;
    stay_c_[static_cast<std::size_t>(i)] = clearly_below(c / (c + c_exit));
    stay_j_[static_cast<std::size_t>(i)] = clearly_below(j / (j + j_exit));
  }

  last_node_ = M;
  last_row_ = job.L;
  entry_blocks_ = static_cast<std::size_t>((std::min(job.L, M) + kEntryBlock - 1) / kEntryBlock);
  entry_block_.assign((rows + static_cast<std::size_t>(M)) * entry_blocks_, -1);
  entries_.clear();

  exit_slot_.assign(rows, -1);
  exits_.clear();
  exit_blocks_ = (t.Q + kExitBlock - 1) / kExitBlock;

  all_canonical_ = std::all_of(job.residues, job.residues + job.L,
                               [&](Residue x) { return static_cast<int>(x) < t.K; });
}

// Visits cells in the order in which they lie in HMMER's vectors; any other order would
// choose other domains.
Exit exit_of_row(const float* row, const MatrixLayout& layout, int Q, float norm, double u) {
  double sum = 0;
  for (;;) {
    for (int q = 0; q < Q; ++q) {
      const float* cell = row + static_cast<std::size_t>(q) * layout.stripe;
      for (const bool match : {true, false}) {
        for (int r = 0; r < kLanes; ++r) {
          sum += static_cast<double>(cell[r] * norm);
          if (u < sum) return {r * Q + q + 1, match};
        }
        cell += layout.state;
      }
    }
  }
}

void add_exits(const float* row, const MatrixLayout& layout, int Q, float norm, double* out) {
  const FourFloats factor = FourFloats::all(norm);
  double total = 0;
  for (int q = 0; q < Q;) {
    DoubleSums sums;
    for (const int end = std::min(q + kExitBlock, Q); q < end; ++q) {
      const float* cell = row + static_cast<std::size_t>(q) * layout.stripe;
      sums.add(FourFloats::load(cell) * factor, FourFloats::load(cell + layout.state) * factor);
    }
    total += sums.total();
    *out++ = total;
  }
}

std::optional<Exit> clear_exit_of_row(const float* row, const MatrixLayout& layout, int Q,
                                      float norm, std::span<const double> sums, double u) {
  const auto block = static_cast<std::size_t>(std::ranges::upper_bound(sums, u) - sums.begin());
  if (block == sums.size()) return {};
  // Any two orders of adding the same 8*Q doubles, with a total near one, differ by less.
  const double margin = (16.0 * Q + 64.0) * 0x1p-52;
  double sum = block > 0 ? sums[block - 1] : 0.0;
  const int first = static_cast<int>(block) * kExitBlock;
  for (int q = first; q < std::min(first + kExitBlock, Q); ++q) {
    const float* cell = row + static_cast<std::size_t>(q) * layout.stripe;
    for (const bool match : {true, false}) {
      for (int r = 0; r < kLanes; ++r) {
        const double before = sum;
        sum += static_cast<double>(cell[r] * norm);
        if (u >= sum) continue;
        if (u - before <= margin || sum - u <= margin) return {};
        return Exit{r * Q + q + 1, match};
      }
      cell += layout.state;
    }
  }
  return {};
}

Exit Ensemble::choose_exit(const RegionMatrix& region, int i, double u) {
  const float* row = region.cells + static_cast<std::size_t>(i) * region.layout.row;
  const int Q = region.tables->Q;
  const float norm = inverse_of(region.special[i].E);
  const auto blocks = static_cast<std::size_t>(exit_blocks_);
  std::int32_t& slot = exit_slot_[static_cast<std::size_t>(i)];
  if (slot < 0) {
    slot = static_cast<std::int32_t>(exits_.size() / blocks);
    exits_.resize(exits_.size() + blocks);
    add_exits(row, region.layout, Q, norm, exits_.data() + exits_.size() - blocks);
  }
  const std::span sums(exits_.data() + static_cast<std::size_t>(slot) * blocks, blocks);
  if (const auto exit = clear_exit_of_row(row, region.layout, Q, norm, sums, u)) return *exit;
  return exit_of_row(row, region.layout, Q, norm, u);
}

// Adds the null2 odds of one sampled domain at its positions after the first. Only visited nodes
// have a weight; adding the zeros of the others would change nothing. Lanes are summed separately,
// in ascending node order, as in the full sum.
void Ensemble::add_null2(const RegionMatrix& region, int visit_count, int emitted, int first,
                         int last, float* correction) {
  const ForwardTables::Tables& t = *region.tables;
  constexpr int kMaxBlocks = kMaxBases / kLanes;
  FourFloats lanes[kLanes][kMaxBlocks];
  for (auto& lane : lanes) std::fill_n(lane, kMaxBlocks, FourFloats::zero());
  const float norm = inverse_of(static_cast<float>(emitted));
  const float* node_match = t.node_match.data();
  auto v = static_cast<std::size_t>(visit_count);
  while (v > 0) {
    const int r = t.lane_of(visits_[v - 1].k);
    const int last_node = (r + 1) * t.Q;
    FourFloats sum[kMaxBlocks];
    std::fill_n(sum, kMaxBlocks, FourFloats::zero());
    for (; v > 0 && visits_[v - 1].k <= last_node; --v) {
      const FourFloats weight = FourFloats::all(visits_[v - 1].count * norm);
      const float* match = node_match + static_cast<std::size_t>(visits_[v - 1].k) * kMaxBases;
      for (int b = 0; b < kMaxBlocks; ++b)
        sum[b] = sum[b] + weight * FourFloats::load(match + b * kLanes);
    }
    std::copy_n(sum, kMaxBlocks, lanes[r]);
  }
  alignas(16) float odds[32];
  for (int b = 0; b < kMaxBlocks; ++b)
    ((lanes[0][b] + lanes[1][b]) + (lanes[2][b] + lanes[3][b])).store(odds + b * kLanes);
  if (!all_canonical_) complete_null2(*t.alphabet, odds);
  const Residue* residues = region.job->residues;
  for (int i = first; i <= last; ++i) correction[i - 1] += odds[residues[i - 1]];
}

Ensemble::Entry Ensemble::Entry::of(const FourFloats& weights) {
  const FourFloats pairs = weights + weights.up<1>();
  alignas(16) float sums[4];
  (pairs + pairs.up<2>()).store(sums);
  if (!(sums[3] > kLeastTotal && std::isfinite(sums[3]))) return {};
  const std::uint32_t m = deviate_at(sums[0] / sums[3]);
  Entry entry{.i = deviate_at(sums[1] / sums[3]), .d = deviate_at(sums[2] / sums[3])};
  entry.low = m + kDeviateMargin;
  if (entry.i - m > 2 * kDeviateMargin) entry.width = entry.i - m - 2 * kDeviateMargin;
  return entry;
}

int Ensemble::Entry::choose(std::uint32_t deviate) const {
  if (low == 0) return -1;
  int choice = 0;
  for (const std::uint32_t begin : {low - kDeviateMargin, i, d}) {
    const std::int64_t distance = std::int64_t{deviate} - begin;
    if (std::abs(distance) < kDeviateMargin) return -1;
    choice += distance > 0;
  }
  return choice;
}

// N and everything before it draw no random numbers, so the trace ends there. It also ends if all
// weights underflow.
enum class Ensemble::State { kC, kJ, kE, kM, kD, kI, kB, kEnd };

// Position of a trace, and its current domain from end to begin.
struct Ensemble::Walk {
  LinearCongruential random;
  int i, k = 0;
  int first_i = 0, first_k = 0, last_i = 0, last_k = 0;  // matches; last_i 0: none yet
  int emitted = 0, visit_count = 0;
  int uncorrected;  // higher positions have received this trace's null2
};

void Ensemble::visit(Walk& w) {
  if (!null2_) return;
  ++w.emitted;
  if (w.visit_count > 0 && visits_[static_cast<std::size_t>(w.visit_count) - 1].k == w.k) {
    visits_[static_cast<std::size_t>(w.visit_count) - 1].count += 1.0f;
  } else {
    visits_[static_cast<std::size_t>(w.visit_count++)] = {w.k, 1.0f};
  }
}

const float* Ensemble::cell(const RegionMatrix& region, int i, int k) const {
  return region.cells + static_cast<std::size_t>(i) * region.layout.row + offset_of_[k];
}

// Goes through C or J to the end of a domain.
Ensemble::State Ensemble::leave_flank(const RegionMatrix& region, bool in_c, Walk& w) const {
  const std::uint32_t* const stay = in_c ? stay_c_.data() : stay_j_.data();
  LinearCongruential random = w.random;
  State next = State::kEnd;
  int i = w.i;
  for (; i > 0; --i) {
    const Deviate u(random);
    if (u.state < stay[i]) continue;
    const SpecialRow before = region.special[i - 1], here = region.special[i];
    const float stays = (in_c ? before.C : before.J) * region.job->loop;
    const float exits = here.E * (in_c ? region.ec : region.ej) * here.scale;
    if (choose_of_two(stays, exits, u) == 0) continue;
    if (here.E > 0) next = State::kE;
    break;
  }
  w.random = random;
  w.i = i;
  return next;
}

// The entries of a match and of those before it on the diagonal, up to the end of their block.
std::span<Ensemble::Entry> Ensemble::entries(int i, int k) {
  const int at = last_row_ < last_node_ ? last_row_ - i : last_node_ - k;
  std::int32_t& block = entry_block_[static_cast<std::size_t>(i + last_node_ - k) * entry_blocks_ +
                                     static_cast<std::size_t>(at / kEntryBlock)];
  if (block < 0) {
    block = static_cast<std::int32_t>(entries_.size() / kEntryBlock);
    entries_.resize(entries_.size() + kEntryBlock);
  }
  return std::span(entries_)
      .subspan(static_cast<std::size_t>(block) * kEntryBlock, kEntryBlock)
      .subspan(static_cast<std::size_t>(at % kEntryBlock));
}

// Follows matches along the diagonal to the state before the first of them.
Ensemble::State Ensemble::match_run(const RegionMatrix& region, Walk& w) {
  if (w.last_i == 0) {
    w.last_i = w.i;
    w.last_k = w.k;
  }
  // Only the first match of a run may follow an insert of its own node.
  visit(w);
  int i = w.i, k = w.k, choice = 1;
  LinearCongruential random = w.random;
  const std::size_t state_d = kCellD * region.layout.state, state_i = kCellI * region.layout.state;
  while (choice == 1 && i > 0 && k > 0) {
    const std::span<Entry> known = entries(i, k);
    auto entry = known.begin();
    Deviate u(random);
    while (u.state - entry->low < entry->width) {
      --i;
      --k;
      if (++entry == known.end()) break;
      u = Deviate(random);
    }
    if (entry == known.end()) continue;
    const auto weights = [&] {
      const float* const before = cell(region, i - 1, k - 1);
      return FourFloats::of(region.special[i - 1].B, *before, before[state_i], before[state_d]) *
             FourFloats::load(&region.tables->nodes[static_cast<std::size_t>(k)].bm);
    };
    if (entry->low == 0) *entry = Entry::of(weights());
    choice = entry->choose(u.state);
    if (choice < 0) {
      alignas(16) float exact[4];
      weights().store(exact);
      choice = choose_exactly(exact, 4, u.exact);
    }
    --i;
    --k;
  }
  w.random = random;
  w.emitted += w.k - k - 1;
  for (int node = w.k - 1; null2_ && node > k; --node)
    visits_[static_cast<std::size_t>(w.visit_count++)] = {node, 1.0f};
  if (choice == 1) return State::kEnd;  // off the matrix
  w.first_i = i + 1;
  w.first_k = k + 1;
  w.i = i;
  w.k = k;
  if (choice == 0) return State::kB;
  if (w.i == 0 || w.k == 0) return State::kEnd;
  return choice == 2 ? State::kI : State::kD;
}

Ensemble::State Ensemble::leave_deletion(const RegionMatrix& region, Walk& w) const {
  const float* const from = cell(region, w.i, w.k - 1);
  const NodeTransitions& t = region.tables->nodes[w.k];
  const Deviate u(w.random);
  const int choice =
      choose_of_two(from[0] * t.md_in, from[kCellD * region.layout.state] * t.dd_in, u);
  if (--w.k == 0) return State::kEnd;
  return choice == 0 ? State::kM : State::kD;
}

Ensemble::State Ensemble::leave_insertion(const RegionMatrix& region, Walk& w) {
  visit(w);
  const float* const from = cell(region, w.i - 1, w.k);
  const NodeTransitions& t = region.tables->nodes[w.k];
  const Deviate u(w.random);
  const int choice = choose_of_two(from[0] * t.mi, from[kCellI * region.layout.state] * t.ii, u);
  if (--w.i == 0) return State::kEnd;
  return choice == 0 ? State::kM : State::kI;
}

void Ensemble::add_outside(int first, int last, float* correction) {
  for (int p = first; correction && p <= last; ++p) correction[p - 1] += 1.0f;
}

// The domain is complete; N or J comes before it.
Ensemble::State Ensemble::leave_begin(const RegionMatrix& region, Walk& w, float* correction) {
  if (correction) {
    // The first residue of a domain counts as outside, as in HMMER.
    add_outside(w.last_i + 1, w.uncorrected, correction);
    add_null2(region, w.visit_count, w.emitted, w.first_i + 1, w.last_i, correction);
    w.uncorrected = w.first_i;
  }
  const SpecialRow special = region.special[w.i];
  const Deviate u(w.random);
  const float move = region.job->move;
  return choose_of_two(special.N * move, special.J * move, u) == 0 ? State::kEnd : State::kJ;
}

void Ensemble::sample_trace(const RegionMatrix& region, LinearCongruential& random, int trace,
                            int offset, float* correction) {
  const int L = region.job->L;
  Walk w{.random = random, .i = L, .uncorrected = L};
  const std::size_t first_segment = segments_.size();
  for (State state = State::kC; state != State::kEnd;) {
    switch (state) {
      case State::kC:
      case State::kJ:
        state = leave_flank(region, state == State::kC, w);
        break;
      case State::kE: {
        const Exit exit = choose_exit(region, w.i, w.random.uniform());
        w.k = exit.node;
        w.last_i = w.visit_count = w.emitted = 0;
        state = exit.in_match ? State::kM : State::kD;
        break;
      }
      case State::kM:
        state = match_run(region, w);
        break;
      case State::kD:
        state = leave_deletion(region, w);
        break;
      case State::kI:
        state = leave_insertion(region, w);
        break;
      case State::kB:
        segments_.push_back({w.first_i + offset, w.last_i + offset, w.first_k, w.last_k, trace});
        state = leave_begin(region, w, correction);
        break;
      case State::kEnd:
        break;
    }
  }
  add_outside(1, w.uncorrected, correction);
  std::reverse(segments_.begin() + static_cast<std::ptrdiff_t>(first_segment), segments_.end());
  random = w.random;
}

const std::vector<Segment>& Ensemble::sample(const RegionMatrix& region, LinearCongruential& random,
                                             int offset, float* correction) {
  prepare(region);
  segments_.clear();
  null2_ = correction != nullptr;
  const int L = region.job->L;
  if (correction) std::fill_n(correction, L, 0.0f);
  for (int trace = 0; trace < kTraces; ++trace) {
    sample_trace(region, random, trace, offset, correction);
  }
  if (correction) to_correction({correction, static_cast<std::size_t>(L)}, correction);
  return segments_;
}

void Ensemble::to_correction(std::span<const float> sums, float* correction) {
  for (std::size_t p = 0; p < sums.size(); ++p) {
    correction[p] = std::log(sums[p] / static_cast<float>(kTraces));
  }
}

}  // namespace hmmjit::domain
