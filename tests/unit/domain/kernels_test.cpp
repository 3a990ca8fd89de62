// Every instruction set and width against the narrowest one, row by row and cell by cell.
#include "domain/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/threads.hpp"
#include "reference/filters.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit::domain {
namespace {

using test_support::kAllModelKinds;
using test_support::kAllTargetKinds;
using test_support::Random;
using test_support::random_model;
using test_support::random_target;

struct Case {
  std::vector<std::vector<Residue>> targets;
  std::vector<LengthModel> lengths;
};

Case make_case(const SearchModel& model, std::uint64_t seed, int count, int max_L, bool multihit) {
  Random random(seed);
  Case c;
  for (int n = 0; n < count; ++n) {
    const int L = random.integer(1, max_L);
    c.targets.push_back(random_target(random.next(), L,
                                      kAllTargetKinds[static_cast<std::size_t>(random.integer(
                                          0, static_cast<int>(std::size(kAllTargetKinds)) - 1))],
                                      model.hmm));
    c.lengths.push_back(length_model(L + random.integer(0, 50), multihit));
  }
  return c;
}

struct Passes {
  std::vector<std::vector<SpecialRow>> forward, backward;
  std::vector<std::vector<AccuracyRow>> accuracy;
  std::vector<std::vector<float>> cells, accuracy_cells, weights, factors;
  std::vector<Job> jobs;
};

// Runs the parsers over all targets, then the full matrices in groups.
Passes run(const Kernels& kernel, const ForwardTables& model, const Case& c, bool full) {
  const ForwardTables::Tables& t = model.tables();
  Passes p;
  const std::size_t n = c.targets.size();
  p.forward.resize(n);
  p.backward.resize(n);
  p.accuracy.resize(n);
  p.cells.resize(n);
  p.accuracy_cells.resize(n);
  p.weights.resize(n);
  p.factors.resize(n);
  for (std::size_t a = 0; a < n; ++a) {
    const auto rows = c.targets[a].size() + 1;
    p.forward[a].assign(rows, {});
    p.backward[a].assign(rows, {});
    p.accuracy[a].assign(rows, {});
    Random random(a);
    for (auto& row : p.accuracy[a]) row.B = static_cast<float>(random.real());
    p.factors[a].assign(rows, 0.0f);
    for (float& f : p.factors[a]) f = static_cast<float>(random.real());
    p.weights[a].assign(static_cast<std::size_t>(t.Q) * 8, 0.0f);
    Job job;
    job.residues = c.targets[a].data();
    job.L = static_cast<int>(c.targets[a].size());
    job.loop = c.lengths[a].loop;
    job.move = c.lengths[a].move;
    job.forward = p.forward[a].data();
    job.backward = p.backward[a].data();
    job.accuracy = p.accuracy[a].data();
    job.factor = p.factors[a].data();
    job.weight_match = p.weights[a].data();
    job.weight_insert = job.weight_match + static_cast<std::size_t>(t.Q) * 4;
    p.jobs.push_back(job);
  }
  const MatrixLayout layout = MatrixLayout::of(t.Q, kernel.groups);
  AlignedArray<float> scratch(layout.row);
  const float ec = c.lengths[0].ec, ej = c.lengths[0].ej;
  if (!full) {
    kernel.forward_parser(t, p.jobs.data(), static_cast<int>(n), ec, ej, scratch.data());
    kernel.backward_parser(t, p.jobs.data(), static_cast<int>(n), ec, ej, scratch.data());
    return p;
  }
  for (std::size_t a = 0; a < n; a += static_cast<std::size_t>(kernel.groups)) {
    const int count = static_cast<int>(std::min(n - a, static_cast<std::size_t>(kernel.groups)));
    std::size_t rows = 0;
    for (int g = 0; g < count; ++g) {
      rows = std::max(rows, c.targets[a + static_cast<std::size_t>(g)].size() + 1);
    }
    AlignedArray<float> matrix(rows * layout.row), accuracy(rows * layout.row);
    Job* jobs = p.jobs.data() + a;
    kernel.forward_full(t, jobs, count, ec, ej, matrix.data());
    const auto collect = [&](const AlignedArray<float>& from, std::vector<float>& to, int g,
                             std::size_t first_row, bool deletions) {
      for (std::size_t i = first_row; i <= static_cast<std::size_t>(jobs[g].L); ++i) {
        for (std::size_t q = 0; q < static_cast<std::size_t>(t.Q); ++q) {
          for (std::size_t s = 0; s < 3; ++s) {
            if (s == kCellD && !deletions) continue;
            for (std::size_t r = 0; r < 4; ++r) {
              to.push_back(from[i * layout.row + q * layout.stripe + s * layout.state +
                                static_cast<std::size_t>(g) * 4 + r]);
            }
          }
        }
      }
    };
    for (int g = 0; g < count; ++g) {
      collect(matrix, p.cells[a + static_cast<std::size_t>(g)], g, 0, true);
    }
    kernel.backward_product(t, jobs, count, ec, ej, matrix.data(), scratch.data());
    for (int g = 0; g < count; ++g) {
      collect(matrix, p.cells[a + static_cast<std::size_t>(g)], g, 1, false);
    }
    kernel.posterior_sums(t, jobs, count, matrix.data());
    kernel.optimal_accuracy(t, jobs, count, matrix.data(), accuracy.data());
    for (int g = 0; g < count; ++g) {
      collect(accuracy, p.accuracy_cells[a + static_cast<std::size_t>(g)], g, 0, true);
    }
  }
  return p;
}

// NaN-proof: strong models may overflow, and then must do so alike.
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

class EverySet : public testing::TestWithParam<test_support::ModelKind> {};

TEST_P(EverySet, GivesTheSameBits) {
  const FlushToZeroScope flush;
  Random random(20 + static_cast<std::uint64_t>(GetParam()));
  const Kernels& narrow = kernel_sets().back().front();
  for (const int M : {1, 2, 4, 5, 33, 99, 100, 101, 230}) {
    const auto model = random_model(random.next(), M, GetParam());
    const ForwardTables tables(*model);
    for (const bool full : {false, true}) {
      const Case c = make_case(*model, random.next(), 7, full ? 60 : 150, !full);
      const Passes expected = run(narrow, tables, c, full);
      for (const auto& set : kernel_sets()) {
        for (const Kernels& kernel : set) {
          if (&kernel == &narrow) continue;
          SCOPED_TRACE(testing::Message() << kernel.name << " x" << kernel.groups << ", M " << M
                                          << (full ? ", full" : ", parser"));
          const Passes actual = run(kernel, tables, c, full);
          for (std::size_t n = 0; n < c.targets.size(); ++n) {
            EXPECT_TRUE(same_bits(expected.forward[n], actual.forward[n])) << n;
            EXPECT_TRUE(same_bits(expected.backward[n], actual.backward[n])) << n;
            EXPECT_TRUE(same_bits(expected.cells[n], actual.cells[n])) << n;
            EXPECT_TRUE(same_bits(expected.weights[n], actual.weights[n])) << n;
            EXPECT_TRUE(same_bits(expected.accuracy[n], actual.accuracy[n])) << n;
            EXPECT_TRUE(same_bits(expected.accuracy_cells[n], actual.accuracy_cells[n])) << n;
            EXPECT_EQ(expected.jobs[n].own_scale, actual.jobs[n].own_scale) << n;
          }
        }
      }
    }
  }
}

// The narrow kernels against the plain reference, which knows no early end of a deletion chain.
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

INSTANTIATE_TEST_SUITE_P(Models, EverySet, testing::ValuesIn(kAllModelKinds),
                         [](const auto& given) {
                           std::string name = test_support::to_string(given.param);
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace hmmjit::domain
