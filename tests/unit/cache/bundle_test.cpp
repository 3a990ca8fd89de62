#include "cache/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cache_fixture.hpp"
#include "core/coding.hpp"

namespace hmmjit::cache {
namespace {

using ::testing::HasSubstr;

class BundleTest : public CacheFolderTest {
 protected:
  std::string make_bundle() {
    const EntryStore store = open_store(root_);
    for (const char* target : {"sm_75", "sm_80", "sm_90"}) {
      EXPECT_TRUE(store.publish(make_key("source", target), make_entry(500)));
    }
    const std::string path = base_ + "/kernels.bundle";
    const auto report = export_bundle(store, path, {});
    EXPECT_TRUE(report) << report.error().to_string();
    return path;
  }
};

Status ignore(DecodedEntry&&, std::string_view) { return {}; }

TEST_F(BundleTest, DamagedEntriesAreLeftOutOfAnExport) {
  make_bundle();
  const EntryStore store = open_store(root_);
  write_file(store.entry_path(make_key("source", "sm_75").digest()), "damaged");
  const auto report = export_bundle(store, base_ + "/rest.bundle", {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->entries, 2u);
  EXPECT_EQ(report->skipped_bad, 1u);
}

TEST_F(BundleTest, EveryFlippedByteAndEveryTruncationIsDetected) {
  const std::string bytes = read_file(make_bundle());
  ASSERT_TRUE(read_bundle(bytes, ignore));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(read_bundle(damaged, ignore)) << i;
    EXPECT_FALSE(read_bundle(bytes.substr(0, i), ignore)) << i;
  }
  EXPECT_FALSE(read_bundle(bytes + "x", ignore));
  std::string longer = bytes.substr(0, bytes.size() - 16) + "x";
  longer += digest_of(longer).bytes();
  EXPECT_FALSE(read_bundle(longer, ignore));
}

// Acceptance test P for bundles: sealed mutations; all or nothing is imported.
TEST_F(BundleTest, SealedMutationsTakeAllOrNothing) {
  const std::string bytes = read_file(make_bundle());
  std::mt19937_64 random(7);
  int rejected = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string mutant = bytes.substr(0, bytes.size() - 16);
    const std::size_t at = random() % mutant.size();
    switch (random() % 4) {
      case 0:
        mutant[at] = static_cast<char>(random());
        break;
      case 1:
        mutant.erase(at, 1 + random() % 30);
        break;
      case 2:
        mutant.insert(at, noise(1 + random() % 30, random()));
        break;
      default:
        for (std::size_t j = 0; j < 8 && at + j < mutant.size(); ++j) mutant[at + j] = '\xff';
    }
    mutant += digest_of(mutant).bytes();
    int taken = 0;
    const Status status = read_bundle(mutant, [&](DecodedEntry&&, std::string_view) -> Status {
      ++taken;
      return {};
    });
    if (!status) {
      ++rejected;
      EXPECT_EQ(taken, 0) << "entries of a damaged bundle were taken";
    }
  }
  EXPECT_GT(rejected, 19000);
}

TEST_F(BundleTest, ABundleWithoutEntriesIsAnError) {
  std::string bytes = "HMMJITKB";
  put_bytes(bytes, kBundleFormatVersion);
  put_bytes(bytes, std::uint8_t{'Z'});
  put_bytes(bytes, std::uint64_t{0});
  bytes += digest_of(bytes).bytes();
  const Status status = read_bundle(bytes, ignore);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("no kernel"));
}

}  // namespace
}  // namespace hmmjit::cache
