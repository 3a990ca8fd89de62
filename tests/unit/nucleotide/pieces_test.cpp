#include "nucleotide/pieces.hpp"

#include <gmock/gmock.h>

namespace hmmjit::nucleotide {
namespace {

using ::testing::ElementsAre;

std::vector<Piece> cut(Partition partition, int block_length,
                       const std::vector<std::int64_t>& lengths) {
  Partitioner partitioner(partition, block_length);
  std::vector<Piece> pieces;
  for (std::size_t n = 0; n < lengths.size(); ++n) partitioner.cut(n, lengths[n], pieces);
  return pieces;
}

const std::vector<std::int64_t> kLengths = {120000, 5000, 300000, 90, 20000, 262144, 262145, 7000};

TEST(Pieces, ShortTargetsShareABlock) {
  EXPECT_THAT(cut(Partition::kGathered, 262144, kLengths),
              ElementsAre(Piece{0, 1, 120000}, Piece{1, 1, 5000}, Piece{2, 1, 137144},
                          Piece{2, 137145, 300000}, Piece{3, 1, 90}, Piece{4, 1, 20000},
                          Piece{5, 1, 79198}, Piece{5, 79199, 262144}, Piece{6, 1, 79198},
                          Piece{6, 79199, 262145}, Piece{7, 1, 7000}));
}

TEST(Pieces, EachTargetForItself) {
  EXPECT_THAT(cut(Partition::kSerial, 262144, kLengths),
              ElementsAre(Piece{0, 1, 120000}, Piece{1, 1, 5000}, Piece{2, 1, 262144},
                          Piece{2, 262145, 300000}, Piece{3, 1, 90}, Piece{4, 1, 20000},
                          Piece{5, 1, 262144}, Piece{6, 1, 262144}, Piece{6, 262145, 262145},
                          Piece{7, 1, 7000}));
}

TEST(Pieces, ATargetMayTakeATwentiethOfABlockThatIsNearlyFull) {
  EXPECT_THAT(cut(Partition::kGathered, 50000, {49000, 4000}),
              ElementsAre(Piece{0, 1, 49000}, Piece{1, 1, 2500}, Piece{1, 2501, 4000}));
}

TEST(Pieces, ABlockEndsWithItsThousandthPiece) {
  std::vector<std::int64_t> lengths(999, 10);
  lengths.insert(lengths.begin() + 500, 0);  // counts, but has nothing to search
  lengths.push_back(50000);
  const auto pieces = cut(Partition::kGathered, 50000, lengths);
  ASSERT_EQ(pieces.size(), 1000u);
  EXPECT_EQ(pieces.back(), (Piece{1000, 1, 50000}));
}

TEST(Pieces, MultiplesOfABlockLeaveNoEmptyPiece) {
  for (const Partition partition : {Partition::kGathered, Partition::kSerial})
    EXPECT_THAT(cut(partition, 50000, {100000, 50000}),
                ElementsAre(Piece{0, 1, 50000}, Piece{0, 50001, 100000}, Piece{1, 1, 50000}));
}

TEST(Pieces, WindowsReachBackToTheFirstResidue) {
  const Piece piece{0, 50001, 100000};
  EXPECT_EQ(piece.start(426), 49575);
  EXPECT_EQ(piece.start(50000), 1);
  EXPECT_EQ(piece.start(60000), 1);
}

}  // namespace
}  // namespace hmmjit::nucleotide
