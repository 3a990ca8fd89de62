// Regions and clusters of small made-up decodings and segments.
#include "domain/regions.hpp"

#include <gtest/gtest.h>

#include "domain/clustering.hpp"

namespace hmmjit::domain {
namespace {

TEST(Regions, MayBeginWithTheFirstResidue) {
  // The probability to be inside a domain is high from row 1, but no domain begins there.
  const Occupancy rows[] = {
      {0, 0, 0}, {0, 0, 0.9f}, {0.8f, 0, 0.9f}, {0.8f, 0.9f, 0.9f}, {0.8f, 0.9f, 0.05f}};
  std::vector<Region> regions;
  RegionSearch search;
  find_regions(rows, 0, 0, 4, search, regions);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].i, 1);
  EXPECT_EQ(regions[0].j, 3);  // 0.9 of a domain ends there
  EXPECT_FALSE(regions[0].multidomain);
}

TEST(Regions, NeedAQuarterSomewhere) {
  const Occupancy rows[] = {{0, 0, 0}, {0, 0, 0.2f}, {0, 0, 0.24f}, {0, 0, 0.05f}};
  std::vector<Region> regions;
  RegionSearch search;
  find_regions(rows, 0, 0, 3, search, regions);
  EXPECT_TRUE(regions.empty());
}

std::vector<Segment> in_every_trace(const std::vector<Segment>& segments, int traces) {
  std::vector<Segment> all;
  for (int trace = 0; trace < traces; ++trace) {
    for (Segment segment : segments) {
      segment.trace = trace;
      all.push_back(segment);
    }
  }
  return all;
}

TEST(Clusters, OfEquallyProbableOnesThatOverlapTheLaterStays) {
  // The same segment of the target against two segments of the model: no links.
  const std::vector<Segment> segments =
      in_every_trace({{10, 50, 10, 50, 0}, {12, 52, 60, 100, 0}}, 4);
  Clustering clustering;
  const auto& clusters = clustering.run(segments, 4);
  ASSERT_EQ(clusters.size(), 1u);
  EXPECT_EQ(clusters[0].i, 12);
  EXPECT_EQ(clusters[0].j, 52);
  EXPECT_EQ(clusters[0].probability, 1.0f);
}

TEST(Clusters, OfOnesThatOverlapTheMoreProbableStays) {
  std::vector<Segment> segments = in_every_trace({{10, 50, 10, 50, 0}}, 4);
  segments.push_back({12, 52, 60, 100, 3});
  segments.push_back({90, 120, 90, 120, 3});
  Clustering clustering;
  const auto& clusters = clustering.run(segments, 4);
  ASSERT_EQ(clusters.size(), 2u);
  EXPECT_EQ(clusters[0].i, 10);
  EXPECT_EQ(clusters[1].i, 90);
  EXPECT_EQ(clusters[1].probability, 0.25f);
}

}  // namespace
}  // namespace hmmjit::domain
