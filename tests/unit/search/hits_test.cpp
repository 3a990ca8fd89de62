// Candidates, thresholds, duplicate domains and order of hits.
#include "search/hits.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace hmmjit {
namespace {

struct DomainSpec {
  float bits;
  double log_p;
  int iali, jali;
};

Hit make_hit(std::string name, std::uint64_t index, float bits, double log_p,
             std::vector<DomainSpec> domains = {}) {
  if (domains.empty()) domains = {{bits, log_p, 5, 50}};
  Hit hit;
  hit.name = std::move(name);
  hit.index = index;
  hit.score.bits = bits;
  hit.score.log_p = log_p;
  for (const DomainSpec& spec : domains) {
    domain::Domain& domain = hit.score.domains.emplace_back();
    domain.bits = spec.bits;
    domain.log_p = spec.log_p;
    domain.iali = spec.iali;
    domain.jali = spec.jali;
  }
  return hit;
}

HitList finish(const Thresholds& rules, std::vector<Hit> hits, std::uint64_t targets) {
  FilterCounters counters;
  counters.targets = targets;
  return finish_hits({rules, false}, std::move(hits), counters);
}

std::vector<std::string> names(const HitList& list) {
  std::vector<std::string> out;
  for (const Hit& hit : list.hits) out.push_back(hit.name);
  return out;
}

TEST(Candidates, AreJudgedWithTheirOwnPosition) {
  const ModelThresholds thresholds;
  domain::TargetScore score;
  score.log_p = std::log(0.5);
  // 0.5 * 20 targets = 10 = E: the last that is reported.
  EXPECT_TRUE(is_candidate(thresholds, score, 0));
  EXPECT_TRUE(is_candidate(thresholds, score, 18));
  EXPECT_FALSE(is_candidate(thresholds, score, 21));
  ModelThresholds fixed;
  fixed.rules.Z = 100;
  EXPECT_FALSE(is_candidate(fixed, score, 0));
  ModelThresholds by_score;
  by_score.rules.target.score = 25;
  score.bits = 24.9f;
  EXPECT_FALSE(is_candidate(by_score, score, 0));
  score.bits = 25.0f;
  EXPECT_TRUE(is_candidate(by_score, score, 1000000));
}

TEST(Thresholds, EachCutoffIsTheModelsOwn) {
  Hmm hmm;
  hmm.name = "m";
  hmm.ga = Cutoff{25, 20};
  hmm.nc = Cutoff{15, 10};
  hmm.tc = Cutoff{35, 30};
  for (const auto& [cutoffs, sequence] :
       {std::pair{ModelCutoffs::kGathering, 25.0}, std::pair{ModelCutoffs::kNoise, 15.0},
        std::pair{ModelCutoffs::kTrusted, 35.0}}) {
    Thresholds rules;
    rules.cutoffs = cutoffs;
    const auto thresholds = thresholds_for(rules, hmm);
    ASSERT_TRUE(thresholds);
    EXPECT_EQ(thresholds->rules.target.score, sequence);
    EXPECT_EQ(thresholds->rules.include_target.score, sequence);
    EXPECT_EQ(thresholds->rules.domain.score, sequence - 5);
    EXPECT_EQ(thresholds->rules.include_domain.score, sequence - 5);
  }
}

TEST(Thresholds, DomainInclusionNeedsAnIncludedTarget) {
  Thresholds rules;
  rules.include_target.score = 100;
  const HitList list = finish(rules, {make_hit("a", 0, 60, -80, {{60, -80, 1, 9}})}, 1);
  EXPECT_TRUE(list.hits[0].flags.reported);
  EXPECT_FALSE(list.hits[0].flags.included);
  EXPECT_TRUE(list.hits[0].domain_flags[0].reported);
  EXPECT_FALSE(list.hits[0].domain_flags[0].included);
}

TEST(Thresholds, DomainsMayBeIncludedWithoutBeingReported) {
  Thresholds rules;
  rules.domain.score = 50;
  const HitList list =
      finish(rules, {make_hit("a", 0, 60, -80, {{40, -60, 1, 9}, {55, -70, 20, 29}})}, 1);
  EXPECT_EQ(list.hits[0].reported_domains, 1);
  EXPECT_EQ(list.hits[0].included_domains, 2);
}

TEST(Order, KeyThenNameThenFirstDomainThenInput) {
  // Delivered out of order, as by tasks.
  const HitList list = finish({},
                              {
                                  make_hit("same", 9, 20, -20, {{20, -20, 7, 9}}),
                                  make_hit("same", 8, 20, -20, {{20, -20, 7, 7}}),
                                  make_hit("same", 3, 20, -20, {{20, -20, 7, 9}}),
                                  make_hit("same", 5, 20, -20, {{20, -20, 6, 9}}),
                                  make_hit("Zulu", 7, 20, -20),
                                  make_hit("best", 6, 20, -30),
                                  make_hit("able", 4, 90, -20),
                              },
                              10);
  EXPECT_EQ(names(list),
            (std::vector<std::string>{"best", "Zulu", "able", "same", "same", "same", "same"}));
  EXPECT_EQ(list.hits[3].index, 5u);
  EXPECT_EQ(list.hits[4].index, 3u);
  EXPECT_EQ(list.hits[5].index, 9u);
  EXPECT_EQ(list.hits[6].index, 8u);
}

TEST(Order, ByScoreWhereInclusionIsByScore) {
  Thresholds rules;
  rules.include_target.score = 10;
  const HitList list = finish(rules, {make_hit("a", 0, 20, -40), make_hit("b", 1, 30, -30)}, 2);
  EXPECT_EQ(names(list), (std::vector<std::string>{"b", "a"}));
}

TEST(Duplicates, WeakerCopyOfAnAlignmentIsDropped) {
  Hit hit = make_hit("a", 0, 60, -80,
                     {{30, -40, 5, 50}, {31, -41, 5, 50}, {31, -41, 5, 50}, {31, -41, 5, 51}});
  hit.score.overlaps = 1;
  const HitList list = finish({}, {hit}, 1);
  const auto& flags = list.hits[0].domain_flags;
  EXPECT_FALSE(flags[0].reported);  // weaker than the second
  EXPECT_TRUE(flags[1].reported);
  EXPECT_FALSE(flags[2].reported);  // of equal ones the first remains
  EXPECT_TRUE(flags[3].reported);   // another alignment
  EXPECT_EQ(list.hits[0].reported_domains, 2);
  EXPECT_EQ(list.hits[0].included_domains, 2);
  // In the largest targets most alignments differ.
  Hit many = make_hit("many", 0, 60, -80, std::vector<DomainSpec>(50'000, {30, -40, 5, 50}));
  for (int d = 0; d < 50'000; ++d) many.score.domains[static_cast<std::size_t>(d)].iali = d / 2;
  many.score.overlaps = 1;
  EXPECT_EQ(finish({}, {many}, 1).hits[0].reported_domains, 25'000);
  hit.score.overlaps = 0;  // without overlapping envelopes there is nothing to compare
  EXPECT_EQ(finish({}, {hit}, 1).hits[0].reported_domains, 4);
}

}  // namespace
}  // namespace hmmjit
