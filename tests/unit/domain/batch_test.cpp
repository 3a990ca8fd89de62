// Batches give the bits of single calls, and calls have no side effects.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/threads.hpp"
#include "domain/domain.hpp"
#include "domains_of.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit::domain {

namespace {

using test_support::kAllModelKinds;
using test_support::ModelKind;
using test_support::Random;
using test_support::random_model;
using test_support::random_target;
using test_support::TargetKind;

struct Set {
  std::vector<std::vector<Residue>> residues;
  std::vector<TargetView> views;
  std::vector<float> nats;
};

// Targets of all kinds, mostly tandem copies, without those whose Forward score fails.
Set make_set(const ForwardTables& tables, std::uint64_t seed, int count, Workspace& workspace) {
  Random random(seed);
  Set s;
  for (int n = 0; n < count; ++n) {
    const TargetKind kind =
        n % 2 == 0 ? TargetKind::kTandem : test_support::any_target_kind(random);
    const int L = random.integer(1, 500);
    auto target = random_target(random.next(), L, kind, tables.model().hmm);
    if (forward_filter(tables, target, workspace)) s.residues.push_back(std::move(target));
  }
  for (const auto& r : s.residues) {
    s.views.push_back({r, "t", {}, {}});
    s.nats.push_back(*forward_filter(tables, r, workspace));
  }
  return s;
}

TEST(Batch, EqualsSingleCallsAndRepeats) {
  const FlushToZeroScope flush;
  Random random(11);
  Workspace shared;
  std::size_t clustered = 0, domains = 0;
  for (const ModelKind kind : kAllModelKinds) {
    for (const int M : {3, 40, 140}) {
      SCOPED_TRACE(to_string(kind) + " " + std::to_string(M));
      const auto model = random_model(random.next(), M, kind);
      const ForwardTables tables(*model);
      const Set s = make_set(tables, random.next(), 11, shared);
      std::vector<std::optional<TargetScore>> batch(s.views.size()), again(s.views.size());
      define_domains_batch(tables, s.views, s.nats, {}, shared, batch);
      for (std::size_t n = 0; n < s.views.size(); ++n) {
        Workspace fresh;
        EXPECT_EQ(batch[n], define_domains(tables, s.views[n], s.nats[n], {}, fresh)) << n;
        if (!batch[n]) continue;
        clustered += static_cast<std::size_t>(batch[n]->clustered);
        domains += batch[n]->domains.size();
      }
      define_domains_batch(tables, s.views, s.nats, {}, shared, again);
      EXPECT_EQ(batch, again);
      std::vector<std::span<const Residue>> residues(s.residues.begin(), s.residues.end());
      std::vector<float> scores(residues.size());
      forward_filter_batch(tables, residues, scores, shared);
      EXPECT_EQ(scores, s.nats);
    }
  }
  // Or the test would be weak.
  EXPECT_GT(clustered, 20u);
  EXPECT_GT(domains, 100u);
}

TEST(Batch, ForwardAndDomainsInOneCall) {
  const FlushToZeroScope flush;
  Random random(12);
  Workspace workspace;
  for (const int M : {20, 120}) {
    const auto model = random_model(random.next(), M);
    const ForwardTables tables(*model);
    Set s = make_set(tables, random.next(), 20, workspace);
    std::vector<float> nats(s.views.size());
    std::vector<std::optional<TargetScore>> results(s.views.size());
    const auto passes = [&](std::size_t n, float score) {
      EXPECT_EQ(score, s.nats[n]);
      return n % 3 != 0;
    };
    // Require only the better half.
    const auto wanted = [](std::size_t, const TargetScore& score) { return score.bits > 20.0f; };
    score_targets_batch(tables, s.views, passes, {}, workspace, nats, results, wanted);
    EXPECT_EQ(nats, s.nats);
    std::size_t kept = 0;
    for (std::size_t n = 0; n < s.views.size(); ++n) {
      const auto alone = define_domains(tables, s.views[n], s.nats[n], {}, workspace);
      if (n % 3 != 0 && alone && alone->bits > 20.0f) {
        EXPECT_EQ(results[n], alone) << n;
        ++kept;
      } else {
        EXPECT_FALSE(results[n].has_value()) << n;
      }
    }
    EXPECT_GT(kept, 3u);
  }
}

// A target parsed in parts, of one row or more than it has, gives the bits of one parsed at once.
TEST(Batch, TargetsInPartsAreTheSame) {
  const FlushToZeroScope flush;
  Random random(17);
  Workspace workspace;
  std::size_t clustered = 0, domains = 0, over_bounds = 0;
  for (const ModelKind kind : kAllModelKinds) {
    for (const int M : {3, 40, 140}) {
      SCOPED_TRACE(to_string(kind) + " " + std::to_string(M));
      const auto model = random_model(random.next(), M, kind);
      const ForwardTables tables(*model);
      const Set s = make_set(tables, random.next(), 9, workspace);
      std::vector<std::optional<TargetScore>> whole(s.views.size()), parts(s.views.size());
      std::vector<float> whole_nats(s.views.size()), parts_nats(s.views.size());
      const auto passes = [](std::size_t n, float) { return n != 1; };
      score_targets_batch(tables, s.views, passes, {}, workspace, whole_nats, whole);
      for (const int rows : {0, 1, 7, 64, 1000}) {
        DomainOptions options;
        options.longest_in_one = 50;  // some of a batch are parsed in parts
        options.rows_of_part = rows;
        score_targets_batch(tables, s.views, passes, options, workspace, parts_nats, parts);
        EXPECT_EQ(parts_nats, whole_nats) << rows;
        EXPECT_EQ(parts, whole) << rows;
      }
      for (const auto& score : whole) {
        if (!score) continue;
        clustered += static_cast<std::size_t>(score->clustered);
        domains += score->domains.size();
        for (const Domain& d : score->domains) over_bounds += d.ienv / 64 != d.jenv / 64;
      }
    }
  }
  EXPECT_GT(clustered, 5u);
  EXPECT_GT(domains, 100u);
  EXPECT_GT(over_bounds, 50u);
}

TEST(Batch, MatrixLimit) {
  const FlushToZeroScope flush;
  const auto model = random_model(5, 60);
  const ForwardTables tables(*model);
  Workspace workspace;
  const Set s = make_set(tables, 6, 6, workspace);
  DomainOptions options;
  options.max_matrix_bytes = 1000;
  std::vector<std::optional<TargetScore>> results(s.views.size());
  EXPECT_THROW(define_domains_batch(tables, s.views, s.nats, options, workspace, results),
               MatrixTooLarge);
  // The workspace remains usable.
  define_domains_batch(tables, s.views, s.nats, {}, workspace, results);
  Workspace fresh;
  EXPECT_EQ(results[0], define_domains(tables, s.views[0], s.nats[0], {}, fresh));
}

TEST(Batch, SeedsDecideTheSamples) {
  const FlushToZeroScope flush;
  // Only regions of several domains are sampled; models with cheap insertions and deletions have
  // most of them.
  std::vector<std::shared_ptr<const SearchModel>> models;
  std::vector<std::unique_ptr<const ForwardTables>> tables;
  std::vector<Set> sets;
  Workspace shared;
  for (const ModelKind kind : kAllModelKinds) {
    models.push_back(random_model(5, 60, kind));
    tables.push_back(std::make_unique<const ForwardTables>(*models.back()));
    sets.push_back(make_set(*tables.back(), 6, 12, shared));
  }
  int clustered = 0;
  const auto corrections = [&](const DomainOptions& options, Workspace& workspace) {
    std::vector<float> all;
    clustered = 0;
    for (std::size_t m = 0; m < sets.size(); ++m) {
      for (std::size_t n = 0; n < sets[m].views.size(); ++n) {
        const auto score =
            define_domains(*tables[m], sets[m].views[n], sets[m].nats[n], options, workspace);
        if (!score) continue;
        clustered += score->clustered;
        for (const Domain& d : score->domains) all.push_back(d.correction_nats);
      }
    }
    return all;
  };
  // Separate statements: the evaluation order of arguments differs between compilers and
  // processors, and the generator's state depends on it.
  DomainOptions other;
  other.seed = 7;
  const std::vector<float> seeded = corrections({}, shared);
  // Enough samples that they cannot agree by chance.
  EXPECT_GT(clustered, 10);
  const std::vector<float> with_other = corrections(other, shared);
  const std::vector<float> seeded_again = corrections({}, shared);
  EXPECT_EQ(seeded, seeded_again);
  EXPECT_NE(seeded, with_other);

  // A generator that is not reset begins with its seed in each workspace.
  DomainOptions running;
  running.reseed = false;
  Workspace one, another;
  const std::vector<float> first = corrections(running, one);
  const std::vector<float> second = corrections(running, one);
  EXPECT_NE(first, seeded);
  EXPECT_NE(first, second);
  const std::vector<float> first_there = corrections(running, another);
  const std::vector<float> second_there = corrections(running, another);
  EXPECT_EQ(first, first_there);
  EXPECT_EQ(second, second_there);
}

}  // namespace
}  // namespace hmmjit::domain
