// Blocks of a database go to a device from where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_kernels.hpp"
#include "io/target_database.hpp"
#include "search/reader_source.hpp"
#include "search_fixture.hpp"
#include "support/folder.hpp"

namespace hmmjit::tests {
namespace {

class DatabaseBlocks : public testing::Test {
 protected:
  void SetUp() override {
    data_ = make_search_data(23, 4, 250);
    auto writer = DatabaseWriter::create(path(), amino_alphabet());
    ASSERT_TRUE(writer);
    TargetBlock block;
    for (std::size_t i = 0; i < data_.targets.size(); ++i) {
      block.begin_target("target" + std::to_string(i), "", "of a test");
      block.append(data_.targets[i]);
      block.end_target();
    }
    ASSERT_TRUE(writer->add(block));
    ASSERT_TRUE(writer->finish(""));
  }
  std::string path() const { return folder_.path() / "targets.hjdb"; }

  test_support::TemporaryFolder folder_;
  SearchData data_;
};

TEST_F(DatabaseBlocks, IndexLeadsToTheResidues) {
  auto database = TargetDatabase::open(path());
  ASSERT_TRUE(database);
  DatabaseReader reader(*database);
  std::vector<gpu::BlockRef> views, copies;
  for (std::uint64_t id = 0;; ++id) {
    auto view = std::make_shared<TargetBlock>();
    const auto more = reader.read_block(*view, 5000);
    ASSERT_TRUE(more);
    if (!*more) break;
    auto copy = std::make_shared<TargetBlock>();
    for (std::size_t i = 0; i < view->size(); ++i) {
      copy->begin_target((*view)[i].name, "", "");
      copy->append((*view)[i].residues);
      copy->end_target();
    }
    views.push_back({id, view});
    copies.push_back({id, copy});
  }
  ASSERT_GT(views.size(), 4u);
  // From the middle on, so that offsets are those of the segment and not of the file.
  const std::span<const gpu::BlockRef> some(views.begin() + 2, views.end());
  const gpu::PackedSegment got = gpu::pack_segment(some);
  const gpu::PackedSegment want =
      gpu::pack_segment(std::span<const gpu::BlockRef>(copies.begin() + 2, copies.end()));
  EXPECT_TRUE(got.targets.residues.empty());
  EXPECT_EQ(got.targets.stored.size(), some.size());
  EXPECT_EQ(got.targets.length, want.targets.length);
  EXPECT_EQ(got.targets.original, want.targets.original);
  EXPECT_EQ(got.targets.length_class, want.targets.length_class);
  EXPECT_EQ(got.targets.class_lengths, want.targets.class_lengths);
  EXPECT_EQ(got.targets.residue_count, want.targets.residue_count);
  std::vector<std::uint8_t> image;
  for (const auto& piece : got.targets.stored) {
    EXPECT_EQ(piece.size() % 16, 0u);
    image.insert(image.end(), piece.begin(), piece.end());
  }
  for (std::size_t i = 0; i < got.targets.size(); ++i) {
    const std::size_t padded = (got.targets.length[i] + 15u) / 16 * 16;
    const auto bytes = [&](const auto& from, std::uint32_t start) {
      return std::vector<std::uint8_t>(
          from.begin() + start * 16,
          from.begin() + static_cast<std::ptrdiff_t>(start * 16 + padded));
    };
    ASSERT_EQ(bytes(image, got.targets.start[i]),
              bytes(want.targets.residues, want.targets.start[i]))
        << i;
  }
}

TEST_F(DatabaseBlocks, SearchedOnDevicesWithTheSameResults) {
  const SearchOutcome want = run_search(data_, nullptr, small_blocks(2));
  ASSERT_EQ(want.error, "");
  FakeDriver driver({*plan::find_device("H200"), *plan::find_device("H200")});
  driver.on_launch = run_on_host;
  for (const int devices : {1, 2}) {
    gpu::GpuFilters gpu(fake_settings(driver, devices));
    wait_until_started(gpu);
    const auto targets = open_target_file(path(), {.alphabet = amino_alphabet()});
    ASSERT_TRUE(targets);
    const SearchOutcome got = run_search(data_, &gpu, small_blocks(2), **targets);
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.text, want.text);
    EXPECT_GT(gpu.statistics().blocks_done, 0u);
    EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
  }
}

}  // namespace
}  // namespace hmmjit::tests
