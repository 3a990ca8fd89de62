// Memory that may still be allocated, from generated files. Searches size their buffers by it, and
// the compiler pool its threads.
#include "core/memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    write("meminfo", "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\nHugepages: 7\n");
    files_ = {root_ / "meminfo", {root_ / "membership", root_ / "mount"}};
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }
  std::uint64_t available() const { return available_memory(files_); }
  test_support::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
  MemoryFiles files_;
};

TEST_F(AvailableMemory, CountsWhatThePageCacheGivesBack) { EXPECT_EQ(available(), 4 * kMiB); }

TEST_F(AvailableMemory, OneGibibyteWhereTheMachineSaysNothing) {
  fs::remove_all(root_);
  EXPECT_EQ(available(), 1024 * kMiB);
}

// CgroupTest has the limits of all levels and versions.
TEST_F(AvailableMemory, AGroupMayLeaveLess) {
  write("membership", "0::/job");
  write("mount/job/memory.max", "4194304");
  write("mount/job/memory.current", "1048576");
  EXPECT_EQ(available(), 3 * kMiB);
  write("mount/job/memory.max", "9437184");
  EXPECT_EQ(available(), 4 * kMiB);
}

class GrantedMemory : public AvailableMemory {
 protected:
  // A group with `left` MiB below its limit, on a machine with 8 GiB.
  void leave(std::uint64_t left) const {
    write("meminfo", "MemAvailable: 8388608 kB");
    write("membership", "4:memory:/job\n0::/job");
    write("mount/memory/job/memory.limit_in_bytes", std::to_string((left + 4) * kMiB));
    write("mount/memory/job/memory.usage_in_bytes", std::to_string(7 * kMiB));
    write("mount/memory/job/memory.stat", "total_inactive_file " + std::to_string(3 * kMiB));
  }
  // In MiB.
  MemoryGrant grant(std::uint64_t wanted, int threads) const {
    auto found = grant_memory(wanted * kMiB, threads, files_);
    EXPECT_TRUE(found) << found.error().to_string();
    if (!found) return {};
    found->bound /= kMiB;
    return *found;
  }
};

TEST_F(GrantedMemory, WithoutAGroupWhatIsAskedForIsGranted) {
  write("meminfo", "MemAvailable: 8388608 kB");
  EXPECT_EQ(grant(0, 16).bound, 4096u);
  EXPECT_EQ(grant(20000, 16).bound, 20000u);  // the system may swap
  EXPECT_EQ(grant(1, 16).bound, 1u);
  EXPECT_EQ(grant(0, 16).threads, 16);
  EXPECT_FALSE(grant(0, 16).group_left);
  EXPECT_FALSE(matrix_that_fits(files_.groups));
}

TEST_F(GrantedMemory, AGroupBoundsMemoryAndThreads) {
  leave(60);
  EXPECT_EQ(grant(0, 2).bound, 30u);
  EXPECT_EQ(grant(4096, 2).bound, 32u);  // 1.1 * 32 + 24 = 59.2
  EXPECT_EQ(grant(10, 2).bound, 10u);
  EXPECT_EQ(grant(0, 2).threads, 2);
  EXPECT_EQ(grant(0, 64).threads, 4);
  EXPECT_EQ(grant(0, 64).group_left, 60 * kMiB);
  EXPECT_EQ(matrix_that_fits(files_.groups), 28 * kMiB);
  leave(21);
  EXPECT_EQ(grant(0, 64).threads, 1);
  EXPECT_EQ(grant(4096, 64).bound, 10u);
  leave(6000);
  EXPECT_EQ(grant(0, 64).bound, 3000u);
  EXPECT_EQ(grant(5000, 64).bound, 5000u);
  EXPECT_EQ(grant(6000, 64).bound, 5432u);
  EXPECT_EQ(grant(0, 64).threads, 64);
}

TEST_F(GrantedMemory, AGroupThatHasNotTheLeastIsAnErrorWithARemedy) {
  leave(19);
  const auto found = grant_memory(0, 1, files_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kResources);
  EXPECT_EQ(found.error().message,
            "the control group of this process has 19 MiB of memory left, and a search needs 20");
  EXPECT_NE(found.error().remedy.find("raise the memory limit"), std::string::npos);
  leave(1);
  EXPECT_EQ(matrix_that_fits(files_.groups), 0u);
}

}  // namespace
}  // namespace hmmjit
