#include "model/targets.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/residue_copies.hpp"

namespace hmmjit {
namespace {

TargetBlock block_of(const std::vector<std::size_t>& lengths) {
  TargetBlock block;
  block.set_first_index(7);
  for (const std::size_t length : lengths) {
    block.begin_target("name" + std::to_string(length), "acc", length % 2 == 0 ? "words" : "");
    block.append(std::vector<Residue>(length, static_cast<Residue>(length % 20)));
    block.end_target();
  }
  return block;
}

TEST(TargetBlock, AFinishedBlockHasTheLayoutOfADatabase) {
  const std::vector<std::size_t> lengths = {0, 1, 15, 16, 17, 300, 0};
  const TargetBlock built = block_of(lengths);
  TargetBlock finished = built;
  finished.finish();
  ASSERT_EQ(finished.size(), lengths.size());
  EXPECT_EQ(finished.first_index(), 7u);
  EXPECT_EQ(finished.residue_count(), built.residue_count());
  EXPECT_FALSE(finished.borrowed());
  EXPECT_TRUE(finished.full(1'000'000)) << "nothing can be added to a view";
  const std::span<const Residue> packed = finished.packed_residues();
  // kernel_templates/common/launch_params.h: starts at multiples of 16 bytes, padding between.
  EXPECT_EQ(packed.size(), 16u + 16 + 16 + 32 + 32 + 304 + 16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(packed.data()) % 16, 0u);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const TargetView a = built[i], b = finished[i];
    EXPECT_TRUE(std::ranges::equal(a.residues, b.residues)) << i;
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.accession, b.accession);
    EXPECT_EQ(a.description, b.description);
    EXPECT_EQ((b.residues.data() - packed.data()) % 16, 0) << i;
    EXPECT_EQ(b.residues.data()[-1], kPaddingCode) << i;
    EXPECT_EQ(b.residues.data()[b.residues.size()], kPaddingCode) << i;
  }
  EXPECT_EQ(finished.bytes(), packed.size() + lengths.size() * sizeof(TargetEntry) +
                                  std::string("name0name1name15name16name17name300name0").size() +
                                  lengths.size() * 3 + 4 * 5);
}

TEST(TargetBlock, ALargeBlockIsNotCopied) {
  TargetBlock block = block_of({std::size_t{1} << 25});
  const Residue* const before = block[0].residues.data();
  block.finish();
  EXPECT_EQ(block[0].residues.data(), before);
  EXPECT_TRUE(block.packed_residues().empty());
  EXPECT_FALSE(block.packed().packed_residues().empty());
}

// Only residues that others may overwrite are copied.
TEST(ResidueCopies, UseABlocksOwnResiduesInPlace) {
  TargetBlock block = block_of({20});
  block.finish();
  ResidueCopies copies;
  EXPECT_EQ(copies.of(block, 0, amino_alphabet()).value().data(), block[0].residues.data());
  std::vector<Residue> others(48, kPaddingCode);
  others[20] = 3;
  const TargetEntry entry{16, 0, 20, 0, 0, 0};
  const TargetBlock borrowed({.residues = others.data(),
                              .text = "",
                              .entries = std::span(&entry, 1),
                              .residue_count = 20,
                              .occupied = std::span<const Residue>(others).subspan(16),
                              .owner = std::make_shared<int>(),
                              .borrowed = true},
                             0);
  const auto copied = copies.of(borrowed, 0, amino_alphabet());
  EXPECT_FALSE(copied.has_value()) << "padding is no residue";
  std::fill_n(others.begin() + 16, 20, Residue{3});
  EXPECT_NE(copies.of(borrowed, 0, amino_alphabet()).value().data(), others.data() + 16);
}

}  // namespace
}  // namespace hmmjit
