// Compares every instruction set and width with the narrowest one, cell by cell, and that one with
// the plain definition of the steps after Forward and Backward.
#include "domain/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/simd_targets.hpp"
#include "core/threads.hpp"
#include "domain/alignment.hpp"
#include "hwy/detect_targets.h"
#include "tests/support/random_profiles.hpp"
#include "tests/support/reference_forward.hpp"

namespace hmmjit::domain {
namespace {

using test_support::kAllModelKinds;
using test_support::Random;
using test_support::random_model;
using test_support::random_target;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Targets, longest first, as jobs.
struct Case {
  std::vector<std::vector<Residue>> targets;
  std::vector<Job> jobs;
  LengthModel odds;
};

Case make_case(const SearchModel& model, std::uint64_t seed, int count, int max_L, bool multihit) {
  Random random(seed);
  Case c;
  for (int n = 0; n < count; ++n) {
    const int L = random.integer(1, max_L);
    const auto kind = test_support::any_target_kind(random);
    c.targets.push_back(random_target(random.next(), L, kind, model.hmm));
  }
  std::ranges::sort(c.targets, std::greater{}, [](const auto& t) { return t.size(); });
  for (const auto& target : c.targets) {
    Job job;
    job.residues = target.data();
    job.L = static_cast<int>(target.size());
    c.odds = length_model(job.L + random.integer(0, 50), multihit);
    job.loop = c.odds.loop;
    job.move = c.odds.move;
    job.owner = c.jobs.size();
    c.jobs.push_back(job);
  }
  return c;
}

// The results of the passes for a job, independent of its lanes.
using Trail = std::vector<std::uint32_t>;

void put(Trail& trail, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  // Strong models may overflow, but must do so equally; all NaNs are equal.
  trail.push_back(std::isnan(value) ? 0x7fc00000 : bits);
}
void put_rows(Trail& trail, const SpecialRows& rows, int L) {
  for (int i = 0; i <= L; ++i) {
    const SpecialRow s = rows[i];
    for (const float value : {s.E, s.N, s.J, s.B, s.C, s.scale}) put(trail, value);
  }
}
void put_decoded(Trail& trail, const AccuracyChoices& view, int K) {
  const DecodedEnvelope& d = view.job.decoded;
  trail.push_back(d.sound);
  for (int x = 0; x < K; ++x) put(trail, d.null2[static_cast<std::size_t>(x)]);
  // Of what overflowed, max() may keep the NaN or the other value: compilers exchange its operands.
  put(trail, d.sound ? d.accuracy : 0.0f);
  for (const int value : {d.exit_row, d.exit_node, d.first_node})
    trail.push_back(static_cast<std::uint32_t>(value));
  // The last row's deletions have no successor.
  for (int i = 1; i <= view.job.L; ++i) {
    for (int k = 1; k <= view.tables.M; ++k) {
      std::uint32_t bits = 0;
      for (const Choice c : {kFromInsert, kFromDeletion, kFromBegin, kStayInsert, kStayDeletion}) {
        const bool counts = c == kStayDeletion ? i < view.job.L && k < view.tables.M
                            : c == kStayInsert ? k < view.tables.M
                                               : true;
        bits = 2 * bits + (counts && chose(view, c, i, k));
      }
      trail.push_back(bits);
      for (const bool insert : {false, true}) {
        const float p = posterior(view, insert, i, k);
        put(trail, p > 0.05f ? p : 0.0f);
      }
    }
  }
}

// Forward and Backward of the model by `kernel`, and for the unihit model the steps after them.
std::vector<Trail> run(const Kernels& kernel, const ForwardTables& model, Case c, bool multihit) {
  const ForwardTables::Tables& t = model.tables();
  const MatrixLayout layout = MatrixLayout::of(t.Q, kernel.groups);
  // Every other job has its own copy of the table.
  EmissionRows emission;
  emission.zero(2 * std::size_t{kCodeRows}, t.Q);
  const auto floats = static_cast<std::ptrdiff_t>(kCodeRows * t.Q * kLanes);
  for (int copy = 0; copy < 2; ++copy) {
    std::copy_n(t.emission.odds.data(), floats, emission.odds.data() + copy * floats);
    std::copy_n(t.emission.deletion_bound.data(), kCodeRows,
                emission.deletion_bound.data() + copy * kCodeRows);
  }
  for (std::size_t n = 1; n < c.jobs.size(); n += 2) c.jobs[n].first_row = kCodeRows;
  Lanes lanes;
  lanes.deal(emission, c.jobs, kernel.groups);
  std::vector<Trail> trails(c.jobs.size());
  AlignedArray<float> cells(static_cast<std::size_t>(lanes.rows + 2) * layout.row);
  const int last = lanes.rows - 1;
  kernel.forward(t, lanes, 0, last, c.odds.ec, c.odds.ej, cells.data(), layout.row);
  // Backward of every third job has to leave Forward's scales; the next job in its lane has not.
  // Not those that would overflow: see put_decoded().
  for (const Job& job : c.jobs) {
    const SpecialRows forward = lanes.forward_of(job);
    double scale = 1;
    for (int i = 1; i <= job.L; ++i) scale *= static_cast<double>(forward[i].scale);
    for (int i = 1; job.owner % 3 == 1 && scale < 1e30 && i <= job.L; ++i) {
      SpecialRow row = forward[i];
      row.scale = 1;
      SpecialRows::put(row, kernel.groups, lanes.forward_row(job.start + i) + job.group * kLanes);
    }
  }
  for (const Job& job : c.jobs) {
    put_rows(trails[job.owner], lanes.forward_of(job), job.L);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(job.L); ++i) {
      const float* row = cells.data() + (static_cast<std::size_t>(job.start) + i) * layout.row;
      for (std::size_t at = 0; at < static_cast<std::size_t>(t.Q) * 3 * kLanes; ++at)
        put(trails[job.owner], row[at / kLanes * layout.state +
                                   static_cast<std::size_t>(job.group) * kLanes + at % kLanes]);
    }
  }
  const auto put_backward = [&] {
    for (const Job& job : c.jobs) {
      trails[job.owner].push_back(job.own_scale);
      put_rows(trails[job.owner], lanes.backward_of(job), job.L);
    }
  };
  if (multihit) {
    kernel.backward(t, lanes, last, 0, c.odds.ec, c.odds.ej, cells.data());
    put_backward();
    return trails;
  }
  EnvelopeSpace space;
  for (const bool sums : {false, true}) {
    kernel.envelope_backward(t, lanes, c.odds.ec, space);
    put_backward();
    kernel.decode(t, lanes, c.odds.ec, sums, space);
    for (const Job& job : c.jobs)
      put_decoded(trails[job.owner], {t, kernel, lanes, space, job}, sums ? t.K : 0);
  }
  return trails;
}

#if HWY_ARCH_X86
// The set that every machine can use is there, besides those that this machine can.
TEST(KernelSets, TheLastIsForEveryMachine) {
  const std::int64_t supported = supported_simd_targets();
  EXPECT_EQ(kernel_sets().size(),
            1u + ((supported & HWY_AVX3) != 0) + ((supported & HWY_AVX2) != 0));
}
#endif

class EverySet : public testing::TestWithParam<test_support::ModelKind> {};

TEST_P(EverySet, GivesTheSameBits) {
  const FlushToZeroScope flush;
  Random random(20 + static_cast<std::uint64_t>(GetParam()));
  const auto sets = kernel_sets();
  const Kernels& narrow = sets.back().front();
  for (const int M : {1, 2, 4, 5, 33, 99, 100, 101, 230}) {
    const auto model = random_model(random.next(), M, GetParam());
    const ForwardTables tables(*model);
    for (const bool multihit : {false, true}) {
      const Case c = make_case(*model, random.next(), 11, multihit ? 150 : 60, multihit);
      const auto expected = run(narrow, tables, c, multihit);
      for (const auto& set : sets) {
        for (const Kernels& kernel : set) {
          if (&kernel == &narrow) continue;
          SCOPED_TRACE(testing::Message() << kernel.name << " x" << kernel.groups << ", M " << M
                                          << (multihit ? ", multihit" : ", envelopes"));
          const auto actual = run(kernel, tables, c, multihit);
          for (std::size_t n = 0; n < actual.size(); ++n)
            EXPECT_TRUE(expected[n] == actual[n]) << n;
        }
      }
    }
  }
}

// The narrow kernels against the plain reference, which never ends a deletion chain early.
TEST_P(EverySet, ScoresLikeTheReference) {
  const FlushToZeroScope flush;
  Random random(90 + static_cast<std::uint64_t>(GetParam()));
  Workspace workspace;
  for (const int M : {1, 3, 50, 99, 100, 180, 400}) {
    const auto model = random_model(random.next(), M, GetParam());
    const ForwardTables tables(*model);
    const Case c = make_case(*model, random.next(), 6, 200, true);
    for (const auto& target : c.targets) {
      const float expected = reference::forward_score(model->odds, target);
      const auto actual = forward_filter(tables, target, workspace);
      if (std::isfinite(expected)) {
        ASSERT_TRUE(actual.has_value());
        EXPECT_EQ(*actual, expected) << "M " << M;
      } else {
        EXPECT_FALSE(actual.has_value());
      }
    }
  }
}

// An envelope with whole matrices, from the definitions of posterior decoding, optimal accuracy and
// null2 (Eddy 2011), by node and in the order of its sums.
class PlainEnvelope {
 public:
  PlainEnvelope(const ForwardTables::Tables& tables, Lanes& lanes, Job& job,
                const LengthModel& odds)
      : t(tables), lanes_(lanes), job_(job), odds_(odds) {
    for (auto* cells : {&PM, &PI, &M, &I, &D})
      cells->assign(static_cast<std::size_t>(job.L + 1),
                    std::vector<float>(static_cast<std::size_t>(4 * t.Q + 1), 0.0f));
  }

  // `change` may set special states of Forward before their use.
  ScoredEnvelope score(const std::function<void(float* row, int i)>& change) {
    const std::size_t row = MatrixLayout::of(t.Q, 1).row;
    AlignedArray<float> forward(static_cast<std::size_t>(lanes_.rows) * row), backward(row);
    const auto sets = kernel_sets();
    const Kernels& kernel = sets.back().front();
    kernel.forward(t, lanes_, 0, lanes_.rows - 1, odds_.ec, odds_.ej, forward.data(), row);
    for (int i = 0; i <= job_.L; ++i) change(lanes_.forward_row(i), i);
    // Backward multiplies matches by the odds of their residue: here by one, and then below.
    EmissionRows ones;
    ones.zero(kCodeRows, t.Q);
    std::fill_n(ones.odds.data(), kCodeRows * t.Q * kLanes, 1.0f);
    lanes_.emission = &ones;
    for (int i = lanes_.rows - 1; i >= 0; --i) {
      kernel.backward(t, lanes_, i, i, odds_.ec, odds_.ej, backward.data());
      if (i < 1 || i > job_.L) continue;
      const float* const f = forward.data() + static_cast<std::size_t>(i) * row;
      float* const b = backward.data();
      for (int k = 1; k <= 4 * t.Q; ++k) {
        const int q = t.stripe_of(k), r = t.lane_of(k);
        cell(PM, i, k) = f[q * 3 * kLanes + r] * b[q * 2 * kLanes + r];
        cell(PI, i, k) = f[(q * 3 + 2) * kLanes + r] * b[(q * 2 + 1) * kLanes + r];
        b[q * 2 * kLanes + r] *= t.match_row(job_.residues[i - 1])[q * kLanes + r];
      }
    }
    const SpecialRows f = lanes_.forward_of(job_), b = lanes_.backward_of(job_);
    auto scale = static_cast<float>(1.0 / static_cast<double>(b[0].N));
    for (int i = 1; i <= job_.L; ++i) {
      const float factor = scale * f[i].scale;
      for (int k = 1; k <= 4 * t.Q; ++k) {
        cell(PM, i, k) *= factor;
        cell(PI, i, k) *= factor;
      }
      pn.push_back(f[i - 1].N * b[i].N * job_.loop * scale);
      pc.push_back(f[i - 1].C * b[i].C * job_.loop * scale);
      pj.push_back(f[i - 1].J * b[i].J * job_.loop * scale);
      if (job_.own_scale) scale *= f[i].scale / b[i].scale;
    }
    ScoredEnvelope out;
    out.sound = !std::isinf(scale);
    fill();
    out.accuracy = C.back();
    null2(out);
    trace(out);
    return out;
  }

 private:
  using Cells = std::vector<std::vector<float>>;
  static float& cell(Cells& cells, int i, int k) {
    return cells[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)];
  }
  static float if_exists(float odds, float value) { return odds > 0 ? value : 0.0f; }
  static float rank(float odds, float value) { return odds > 0 ? value : kNever; }

  void fill() {
    for (auto* cells : {&M, &I, &D})
      std::fill(cells->front().begin(), cells->front().end(), kNever);
    E = J = C = {kNever};
    N = B = {0.0f};
    for (int i = 1; i <= job_.L; ++i) {
      const auto n = static_cast<std::size_t>(i);
      float best = kNever;
      for (int k = 1; k <= 4 * t.Q; ++k) {
        const NodeTransitions x =
            k <= t.M ? t.nodes[static_cast<std::size_t>(k)] : NodeTransitions{};
        const float m = k > 1 ? cell(M, i - 1, k - 1) : kNever;
        const float in = k > 1 ? cell(I, i - 1, k - 1) : kNever;
        const float d = k > 1 ? cell(D, i - 1, k - 1) : kNever;
        cell(M, i, k) = std::max({if_exists(x.bm, B[n - 1]), if_exists(x.mm_in, m),
                                  if_exists(x.im_in, in), if_exists(x.dm_in, d)}) +
                        cell(PM, i, k);
        cell(I, i, k) =
            std::max(if_exists(x.mi, cell(M, i - 1, k)), if_exists(x.ii, cell(I, i - 1, k))) +
            cell(PI, i, k);
        cell(D, i, k) = k == 1 ? kNever
                               : std::max(if_exists(x.md_in, cell(M, i, k - 1)),
                                          if_exists(x.dd_in, cell(D, i, k - 1)));
        best = std::max({best, cell(M, i, k), cell(D, i, k)});
      }
      E.push_back(best);
      J.push_back(std::max(J[n - 1] + pj[n - 1], 0.0f));
      C.push_back(std::max(C[n - 1] + pc[n - 1], best));
      N.push_back(N[n - 1] + pn[n - 1]);
      B.push_back(std::max(N[n], J[n]));
    }
  }

  void null2(ScoredEnvelope& out) {
    const float norm = static_cast<float>(1.0 / static_cast<double>(static_cast<float>(job_.L)));
    const auto sum = [](const std::vector<float>& values) {
      float total = 0;
      for (const float v : values) total += v;
      return total;
    };
    const float outside = (sum(pn) * norm + sum(pc) * norm) + sum(pj) * norm;
    for (int x = 0; x < t.K; ++x) {
      float lanes[kLanes] = {};
      for (int q = 0; q < t.Q; ++q) {
        for (int r = 0; r < kLanes; ++r) {
          const int k = r * t.Q + q + 1;
          float match = 0, insert = 0;
          for (int i = 1; i <= job_.L; ++i) {
            match += cell(PM, i, k);
            insert += cell(PI, i, k);
          }
          lanes[r] += match * norm * t.match_row(x)[q * kLanes + r];
          lanes[r] += insert * norm;
        }
      }
      out.null2[static_cast<std::size_t>(x)] =
          ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + outside;
    }
  }

  void exit_at(int i) {
    float best = kNever;
    for (int q = 0; q < t.Q; ++q) {
      for (int r = 0; r < kLanes; ++r) {
        const int k = r * t.Q + q + 1;
        if (cell(M, i, k) >= best) best = cell(M, i, k), k_ = k, state_ = 'M';
      }
      for (int r = 0; r < kLanes; ++r) {
        const int k = r * t.Q + q + 1;
        if (cell(D, i, k) > best) best = cell(D, i, k), k_ = k, state_ = 'D';
      }
    }
    i_ = i;
  }

  void trace(ScoredEnvelope& out) {
    int i = job_.L;
    while (i > 0 && C[static_cast<std::size_t>(i - 1)] + pc[static_cast<std::size_t>(i - 1)] >
                        E[static_cast<std::size_t>(i)])
      --i;
    if (i == 0) return;
    exit_at(i);
    out.last_row = i_, out.last_node = k_;
    if (k_ > t.M) return;
    const auto step = [&](int state, float p) {
      const double rounded = static_cast<double>(p) + 0.05;
      const int tenths = rounded >= 1.0        ? 10
                         : std::isnan(rounded) ? 0
                                               : static_cast<int>(std::floor(rounded * 10.0));
      out.path.push_back(static_cast<std::uint8_t>(state | tenths << 2));
    };
    for (;;) {
      if (i_ == 0 || k_ == 0) return out.path.clear();
      const NodeTransitions x = t.nodes[static_cast<std::size_t>(k_)];
      if (state_ == 'M') {
        step(0, cell(PM, i_, k_));
        const float from[] = {rank(x.mm_in, cell(M, i_ - 1, k_ - 1)),
                              rank(x.im_in, cell(I, i_ - 1, k_ - 1)),
                              rank(x.dm_in, cell(D, i_ - 1, k_ - 1)),
                              rank(x.bm, B[static_cast<std::size_t>(i_ - 1)])};
        state_ = "MIDB"[std::max_element(from, from + 4) - from];
        --i_, --k_;
        if (state_ != 'B') continue;
        const auto n = static_cast<std::size_t>(i_);
        if (N[n] > J[n]) return;
        ++from_J;
        exit_at(1);
        out.last_row = i_, out.last_node = k_;
        out.path.clear();
        if (k_ > t.M) return;
      } else if (state_ == 'D') {
        step(1, 0);
        state_ =
            rank(x.md_in, cell(M, i_, k_ - 1)) >= rank(x.dd_in, cell(D, i_, k_ - 1)) ? 'M' : 'D';
        --k_;
      } else {
        step(2, cell(PI, i_, k_));
        state_ = rank(x.mi, cell(M, i_ - 1, k_)) >= rank(x.ii, cell(I, i_ - 1, k_)) ? 'M' : 'I';
        --i_;
      }
    }
  }

 public:
  int from_J = 0;

 private:
  const ForwardTables::Tables& t;
  Lanes& lanes_;
  Job& job_;
  LengthModel odds_;
  Cells PM, PI, M, I, D;
  std::vector<float> E, N, J, B, C, pn, pc, pj;
  int i_ = 0, k_ = 0;
  char state_ = 'M';
};

// Compares every envelope by every kernel with the plain definition: score, null2 and alignment.
// Returns the number of paths through J.
int expect_plain(const SearchModel& model, const Case& all,
                 const std::function<void(float* row, int i)>& change) {
  const ForwardTables tables(model);
  const ForwardTables::Tables& t = tables.tables();
  int from_J = 0;
  Aligner aligner;
  EnvelopeSpace space;
  for (const Job& given : all.jobs) {
    Job job = given, plain_job = given;
    Lanes plain_lanes;
    plain_lanes.deal(t.emission, {&plain_job, 1}, 1);
    PlainEnvelope plain(t, plain_lanes, plain_job, all.odds);
    const ScoredEnvelope expected = plain.score(change);
    from_J += plain.from_J;
    Domain expected_domain;
    const bool expected_alignment =
        expected.sound &&
        aligner.align(t, t.emission, 0, job.residues, expected, model.hmm, expected_domain);
    for (const auto& set : kernel_sets()) {
      for (const Kernels& kernel : set) {
        SCOPED_TRACE(testing::Message() << kernel.name << " x" << kernel.groups);
        job = given;
        Lanes lanes;
        lanes.deal(t.emission, {&job, 1}, kernel.groups);
        AlignedArray<float> cells(MatrixLayout::of(t.Q, kernel.groups).row);
        kernel.forward(t, lanes, 0, lanes.rows - 1, all.odds.ec, all.odds.ej, cells.data(), 0);
        for (int i = 0; i <= job.L; ++i) change(lanes.forward_row(i), i);
        kernel.envelope_backward(t, lanes, all.odds.ec, space);
        EXPECT_EQ(job.own_scale, plain_job.own_scale);
        kernel.decode(t, lanes, all.odds.ec, true, space);
        EXPECT_EQ(job.decoded.sound, expected.sound);
        if (!expected.sound) continue;
        EXPECT_EQ(job.decoded.accuracy, expected.accuracy);
        for (int x = 0; x < t.K; ++x)
          EXPECT_EQ(job.decoded.null2[static_cast<std::size_t>(x)],
                    expected.null2[static_cast<std::size_t>(x)]);
        Domain domain;
        EXPECT_EQ(aligner.align({t, kernel, lanes, space, job}, model.hmm, domain),
                  expected_alignment);
        EXPECT_TRUE(domain == expected_domain)
            << "exit " << job.decoded.exit_row << ", " << job.decoded.exit_node << "; expected "
            << expected.last_row << ", " << expected.last_node;
      }
    }
  }
  return from_J;
}

// The model without some of its transitions and entries.
std::shared_ptr<SearchModel> with_gaps(const SearchModel& model, Random& random) {
  auto sparse = std::make_shared<SearchModel>(model);
  OddsProfile& o = sparse->odds;
  for (auto* odds :
       {&o.entry, &o.mm_in, &o.im_in, &o.dm_in, &o.mi_out, &o.ii_out, &o.md_out, &o.dd_out})
    for (float& value : *odds)
      if (random.chance(0.1)) value = 0;
  return sparse;
}

TEST_P(EverySet, DecodesLikeThePlainDefinition) {
  const FlushToZeroScope flush;
  Random random(150 + static_cast<std::uint64_t>(GetParam()));
  const auto unchanged = [](float*, int) {};
  int from_J = 0;
  for (const int M : {1, 2, 5, 8, 33, 101}) {
    SCOPED_TRACE(M);
    const auto model = random_model(random.next(), M, GetParam());
    const auto sparse = with_gaps(*model, random);
    EXPECT_TRUE(M < 33 || !ForwardTables(*sparse).tables().plain);
    for (const SearchModel* m : {&*model, static_cast<const SearchModel*>(&*sparse)}) {
      const Case c = make_case(*m, random.next(), 5, 90, false);
      expect_plain(*m, c, unchanged);
      // Nothing comes from N, as after an underflow: J before the domain.
      from_J += expect_plain(*m, c, [](float* row, int i) { row[1] = i < 40 ? 0.0f : row[1]; });
    }
  }
  std::printf("%d paths through J\n", from_J);
  EXPECT_GT(from_J, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, EverySet, testing::ValuesIn(kAllModelKinds),
                         [](const auto& given) {
                           std::string name = test_support::to_string(given.param);
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace hmmjit::domain
