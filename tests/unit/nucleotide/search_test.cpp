// Results do not depend on threads, blocks of input, or the strand of a match. The program's tests
// compare them with nhmmer's.
#include "nucleotide/search.hpp"

#include <gmock/gmock.h>

#include <set>
#include <span>

#include "core/threads.hpp"
#include "nucleotide/emissions.hpp"
#include "tests/support/nucleotide_queries.hpp"

namespace hmmjit::nucleotide {
namespace {

using test_support::ModelKind;
using test_support::Random;
using test_support::TargetKind;

std::vector<Query> queries() { return {query_of(11, 70), query_of(12, 150), query_of(13, 25)}; }

// Copies of the models separated by random residues.
std::vector<std::vector<Residue>> targets() {
  Random random(5);
  std::vector<std::vector<Residue>> targets;
  const auto models = queries();
  for (const int length : {700, 130000, 0, 20, 90000, 3000, 50001}) {
    std::vector<Residue> residues = test_support::random_target(
        random.next(), length, TargetKind::kBackground, models[0].model->hmm);
    for (int at = 300; at + 400 < length; at += 2500) {
      const Hmm& hmm = models[static_cast<std::size_t>(random.integer(0, 2))].model->hmm;
      const auto copy = test_support::random_target(random.next(), 400, TargetKind::kTandem, hmm);
      std::ranges::copy(copy, residues.begin() + at);
    }
    targets.push_back(std::move(residues));
  }
  return targets;
}

std::vector<HitList> search(std::vector<Query> models, const Options& options,
                            std::size_t targets_of_block,
                            const std::vector<std::vector<Residue>>& all = targets()) {
  const std::size_t count = models.size();
  Search search(std::move(models), options);
  for (std::size_t n = 0; n < all.size();) {
    TargetBlock block;
    for (std::size_t i = 0; i < targets_of_block && n < all.size(); ++i, ++n) {
      block.begin_target(std::to_string(n), "", "");
      block.append(all[n]);
      block.end_target();
    }
    EXPECT_TRUE(search.add(block));
  }
  std::vector<HitList> lists;
  for (std::size_t m = 0; m < count; ++m) lists.push_back(search.finish(m));
  return lists;
}

void expect_equal(const std::vector<HitList>& a, const std::vector<HitList>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t m = 0; m < a.size(); ++m) {
    ASSERT_EQ(a[m].hits.size(), b[m].hits.size());
    for (std::size_t n = 0; n < a[m].hits.size(); ++n) {
      EXPECT_EQ(a[m].hits[n].domain, b[m].hits[n].domain) << m << " " << n;
      EXPECT_EQ(a[m].hits[n].subject->index, b[m].hits[n].subject->index);
    }
    EXPECT_EQ(a[m].counters.forward, b[m].counters.forward);
    EXPECT_EQ(a[m].counters.viterbi, b[m].counters.viterbi);
    EXPECT_EQ(a[m].counters.residues, b[m].counters.residues);
  }
}

TEST(NucleotideSearch, ThreadsAndBlocksDoNotMatter) {
  Options options;
  options.block_length = 50000;
  const auto expected = search(queries(), options, 100);
  for (const HitList& list : expected) EXPECT_GT(list.hits.size(), 20u);
  EXPECT_EQ(expected[0].counters.targets, 7u);
  options.threads = 4;
  for (const std::size_t targets_of_block : {100, 1, 3})
    expect_equal(search(queries(), options, targets_of_block), expected);
  // One model: all threads begin at once, with the initial emissions.
  expect_equal(search({queries()[1]}, options, 100), {expected[1]});
}

// Half of the nodes are masked: they count in a query's first window, and no more after its first
// envelope.
Query half_masked() {
  Hmm hmm = test_support::random_hmm(3, 60, ModelKind::kTypical, dna_alphabet());
  for (int k = 0; k < hmm.M; ++k) hmm.mm += k % 2 == 0 ? 'm' : '.';
  return query_of(std::move(hmm));
}

std::vector<std::vector<Residue>> targets_of(const Query& query) {
  std::vector<std::vector<Residue>> all;
  for (const int length : {600000, 140000, 140000, 140000}) {
    const std::uint64_t seed = all.size();
    all.push_back(
        test_support::random_target(seed, length, TargetKind::kBackground, query.model->hmm));
    const auto copy = test_support::random_target(seed, 150, TargetKind::kTandem, query.model->hmm);
    for (int at = 1000; at < 50000; at += 7000) std::ranges::copy(copy, all.back().begin() + at);
  }
  return all;
}

// A thread that begins a later target at the same time as others begin the first one finds its
// first window differently, until it learns of the first target.
TEST(NucleotideSearch, AWrongGuessOfRestoredEmissionsIsSearchedAgain) {
  const Query query = half_masked();
  const auto all = targets_of(query);
  Options options;
  options.block_length = 1 << 20;
  options.Z = 1;
  const auto expected = search({query}, options, 100, all);
  std::multiset<double> together, alone;
  for (const Hit& hit : expected[0].hits) together.insert(hit.domain.log_p);
  for (const auto& target : all) {
    const auto lists = search({query}, options, 1, {target});
    for (const Hit& hit : lists[0].hits) alone.insert(hit.domain.log_p);
  }
  EXPECT_NE(together, alone);
  options.threads = 8;
  expect_equal(search({query}, options, 100, all), expected);
}

// In a search of each list of models after the other.
std::vector<HitList> scan(const std::vector<std::vector<Query>>& models,
                          std::span<const std::vector<Residue>> all, int threads) {
  Options options;
  options.partition = Partition::kTargets;
  options.threads = threads;
  TargetBlock block;
  for (const auto& target : all) {
    block.begin_target("target", "", "");
    block.append(target);
    block.end_target();
  }
  Scan first, later;
  for (const std::vector<Query>& queries : models) {
    Search search(queries, options);
    EXPECT_TRUE(search.scan(block, first));
    EXPECT_TRUE(search.scan(block, later));
  }
  std::vector<HitList> lists, again;
  for (std::size_t n = 0; n < all.size(); ++n) {
    lists.push_back(first.finish(n));
    again.push_back(later.finish(n));
  }
  expect_equal(again, lists);  // a later block finds nothing of an earlier one
  return lists;
}

TEST(NucleotideSearch, TargetsAreScannedAsIfAlone) {
  const Query query = half_masked(), other = query_of(11, 70);
  auto all = targets_of(query);
  all.insert(all.begin() + 1, std::vector<Residue>());
  const auto copy = test_support::random_target(8, 400, TargetKind::kTandem, other.model->hmm);
  std::ranges::copy(copy, all[2].begin() + 4000);
  std::vector<HitList> alone;
  for (const auto& target : all)
    alone.push_back(std::move(scan({{query, other}}, {&target, 1}, 1)[0]));
  for (const std::size_t n : {0u, 2u, 3u, 4u}) EXPECT_GT(alone[n].hits.size(), 5u);
  EXPECT_EQ(alone[1].counters.targets, 1u);
  for (const int threads : {1, 4}) expect_equal(scan({{query, other}}, all, threads), alone);
  std::set<std::uint64_t> models;
  for (const Hit& hit : alone[2].hits) models.insert(hit.subject->index);
  EXPECT_EQ(models.size(), 2u);
  expect_equal(scan({{query}, {other}}, all, 1), alone);
}

TEST(NucleotideSearch, RestoredEmissionsSettle) {
  const FlushToZeroScope flush;
  const auto model = queries()[0].model;
  const domain::ForwardTables tables(*model);
  Emissions emissions(tables);
  const auto first = emissions.after(0), second = emissions.after(1);
  const domain::ForwardTables::Tables& t = tables.tables();
  int different = 0;
  for (int k = 1; k <= t.M; ++k) {
    const int cell = t.stripe_of(k) * domain::kLanes + t.lane_of(k);
    const float before = first->rows.row(2, t.Q)[cell], after = second->rows.row(2, t.Q)[cell];
    different += before != after;
    if (k % 5 == 0) {
      EXPECT_EQ(after, 1.0f);
    } else {
      EXPECT_NEAR(after, before, 1e-6f * before);
    }
  }
  EXPECT_GE(different, t.M / 5);
  EXPECT_EQ(emissions.after(1000), emissions.after(1001));
}

TEST(NucleotideSearch, AModelTooLongForWindowsIsRefused) {
  EXPECT_TRUE(check("m", 32767, 65535));
  EXPECT_FALSE(check("m", 32768, 65535));
  EXPECT_FALSE(check("m", 32767, 65536));
}

}  // namespace
}  // namespace hmmjit::nucleotide
