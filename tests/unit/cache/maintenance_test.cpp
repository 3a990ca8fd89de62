#include "cache/maintenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_fixture.hpp"

namespace hmmjit::cache {
namespace {

namespace fs = std::filesystem;

class MaintenanceTest : public CacheFolderTest {
 protected:
  EntryStore store_of(int entries) const {
    EntryStore store = open_store(root_);
    for (int i = 0; i < entries; ++i) {
      const CacheKey key = make_key("source " + std::to_string(i));
      EXPECT_TRUE(store.publish(key, make_entry(9000, static_cast<std::uint64_t>(i))));
    }
    return store;
  }
};

TEST_F(MaintenanceTest, ClearTakesEntriesAndOldTemporariesAndNoFileOfTheOwner) {
  const EntryStore store = store_of(3);
  write_file(root_ + "/tmp-1-0-old", "half");
  set_age(root_ + "/tmp-1-0-old", 3700);
  write_file(root_ + "/README", "the owner's");
  const ClearReport report = clear(store, std::uint64_t{1} << 30);
  EXPECT_EQ(report.removed, 3u);
  EXPECT_TRUE(report.status(store));
  EXPECT_TRUE(store.scan().entries.empty());
  EXPECT_FALSE(fs::exists(root_ + "/tmp-1-0-old"));
  EXPECT_TRUE(fs::exists(root_ + "/README"));
  for (const auto& item : fs::directory_iterator(root_)) EXPECT_FALSE(item.is_directory());
}

TEST_F(MaintenanceTest, ClearMakesNoFolder) {
  const EntryStore store = open_store(root_);
  EXPECT_EQ(clear(store, 1 << 20).removed, 0u);
  EXPECT_FALSE(fs::exists(root_));
}

TEST_F(MaintenanceTest, ImportKeepsTheCap) {
  const EntryStore store = store_of(30);
  const std::string bundle = base_ + "/kernels.bundle";
  ASSERT_TRUE(export_bundle(store, bundle, {}));
  const EntryStore other = open_store(base_ + "/other");
  const std::uint64_t cap = store.scan().allocated_total / 2;
  const auto report = import_and_trim(other, bundle, cap);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->imported, 30u);
  EXPECT_LE(other.scan().allocated_total, cap);
  EXPECT_FALSE(other.scan().entries.empty());
}

}  // namespace
}  // namespace hmmjit::cache
