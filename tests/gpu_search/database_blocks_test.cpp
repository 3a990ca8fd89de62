// Blocks of a database go to a device from where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_kernels.hpp"
#include "io/target_database.hpp"
#include "pairs_fixture.hpp"
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
    ASSERT_TRUE(writer->add(*block_of(data_.targets)));
    ASSERT_TRUE(writer->finish(""));
  }
  std::string path() const { return folder_.path() / "targets.hjdb"; }

  test_support::TemporaryFolder folder_;
  SearchData data_;
};

TEST_F(DatabaseBlocks, AreNotCopied) {
  auto database = TargetDatabase::open(path());
  ASSERT_TRUE(database);
  DatabaseReader reader(*database);
  std::vector<gpu::BlockRef> blocks;
  for (std::uint64_t id = 0; id < 4; ++id) {
    auto block = std::make_shared<TargetBlock>();
    ASSERT_TRUE(reader.read_block(*block, 5000).value());
    blocks.push_back({id, block});
  }
  const gpu::PackedSegment packed = gpu::pack_segment(blocks);
  EXPECT_TRUE(packed.targets.residues.empty());
  EXPECT_EQ(packed.targets.stored.size(), blocks.size());
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
