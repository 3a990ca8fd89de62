// Regions, clusters and exits of small made-up decodings, segments and rows.
#include "domain/regions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "domain/clustering.hpp"
#include "domain/ensemble.hpp"

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

TEST(Ensemble, EveryCellOfARowIsAnExitAndTheReferenceDecidesNextToBoundaries) {
  constexpr int Q = 6;
  const MatrixLayout layout = MatrixLayout::of(Q, 1);
  std::vector<float> row(layout.row);
  for (std::size_t c = 0; c < row.size(); ++c) row[c] = static_cast<float>(1 + c % 5);
  const float norm = 1.0f / 256;
  std::vector<double> sums(2);
  add_exits(row.data(), layout, Q, norm, sums.data());
  double below = 0;
  for (int q = 0; q < Q; ++q) {
    for (const CellState state : {kCellM, kCellD}) {
      for (int r = 0; r < kLanes; ++r) {
        const std::size_t at = static_cast<unsigned>(q) * layout.stripe + state * layout.state +
                               static_cast<unsigned>(r);
        const double above = below + static_cast<double>(row[at] * norm);
        const double first = std::nextafter(below, 1.0), last = std::nextafter(above, 0.0);
        for (const double u : {below, first, (below + above) / 2, last}) {
          const Exit exit = exit_of_row(row.data(), layout, Q, norm, u);
          EXPECT_EQ(exit.node, r * Q + q + 1) << u;
          EXPECT_EQ(exit.in_match, state == kCellM) << u;
          const auto clear = clear_exit_of_row(row.data(), layout, Q, norm, sums, u);
          EXPECT_EQ(clear.has_value(), u != below && u != first && u != last) << u;
          if (!clear) continue;
          EXPECT_EQ(clear->node, exit.node) << u;
          EXPECT_EQ(clear->in_match, exit.in_match) << u;
        }
        below = above;
      }
    }
  }
  // Rounding may leave a deviate above the sum of all: the reference then begins again.
  EXPECT_FALSE(clear_exit_of_row(row.data(), layout, Q, norm, sums, below));
  EXPECT_EQ(exit_of_row(row.data(), layout, Q, norm, below).node, 1);
}

}  // namespace
}  // namespace hmmjit::domain
