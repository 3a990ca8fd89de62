#include "nucleotide/hits.hpp"

#include <gmock/gmock.h>

namespace hmmjit::nucleotide {
namespace {

using ::testing::ElementsAre;

struct Place {
  int from, to, hmm_from, hmm_to;
  double log_p;
};

// The first residues of the remaining alignments, in the order of the report.
std::vector<int> left(const std::vector<Place>& places, double e_value = 10) {
  const auto subject = std::make_shared<const Subject>(Subject{.name = "t", .length = 9999});
  std::vector<StoredHit> hits;
  for (const Place& p : places) {
    Hit hit{.subject = subject, .bottom = p.from > p.to};
    hit.domain.iali = p.from;
    hit.domain.jali = p.to;
    hit.domain.hmm_from = p.hmm_from;
    hit.domain.hmm_to = p.hmm_to;
    hit.domain.log_p = p.log_p;
    hits.push_back({std::move(hit), {e_value}, {}});
  }
  const HitList list = finish_hits(std::move(hits), false, {}, nullptr);
  EXPECT_EQ(list.reported, list.hits.size());
  std::vector<int> first;
  for (const Hit& hit : list.hits) first.push_back(hit.domain.iali);
  return first;
}

TEST(NucleotideHits, TheMoreLikelyOfTwoDuplicatesStays) {
  // Starts or ends within three residues, or an overlap of 95 % of one hit.
  EXPECT_THAT(left({{100, 200, 1, 100, -20}, {103, 300, 1, 100, -30}}), ElementsAre(103));
  EXPECT_THAT(left({{100, 200, 1, 100, -30}, {110, 300, 1, 100, -20}}), ElementsAre(100, 110));
  EXPECT_THAT(left({{100, 300, 1, 100, -30}, {150, 297, 1, 100, -20}}), ElementsAre(100));
  EXPECT_THAT(left({{100, 399, 1, 100, -20}, {120, 219, 1, 100, -30}}), ElementsAre(120));
  // The first of two equal hits remains.
  EXPECT_THAT(left({{100, 200, 1, 100, -20}, {101, 300, 1, 100, -20}}), ElementsAre(100));
}

TEST(NucleotideHits, HitsOfOtherStrandsOrNodesAreNoDuplicates) {
  EXPECT_THAT(left({{100, 200, 1, 100, -20}, {200, 100, 1, 100, -19}}), ElementsAre(100, 200));
  EXPECT_THAT(left({{100, 200, 1, 50, -20}, {100, 200, 51, 100, -19}}), ElementsAre(100, 100));
}

// A removed hit is no longer compared: the survivor is.
TEST(NucleotideHits, NeighboursAreComparedWithTheSurvivor) {
  EXPECT_THAT(left({{100, 200, 1, 100, -30}, {103, 210, 1, 100, -20}, {106, 220, 1, 100, -10}}),
              ElementsAre(100, 106));
}

TEST(NucleotideHits, ThresholdsComeAfterDuplicates) {
  EXPECT_THAT(left({{100, 200, 1, 100, -1}, {103, 300, 1, 100, -2}, {500, 600, 1, 100, 0.5}}, 1),
              ElementsAre(103));
}

}  // namespace
}  // namespace hmmjit::nucleotide
