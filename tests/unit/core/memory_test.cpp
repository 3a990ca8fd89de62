// What may still be allocated, from files made for the test: the one figure by which a search sizes
// its buffers and the compiler pool its threads.
#include "core/memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::temp_directory_path() / ("hmmjit_memory_" + std::to_string(::getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    write("meminfo", "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\nHugepages: 7\n");
    files_ = {root_ / "meminfo", {root_ / "membership", root_ / "mount"}};
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }
  std::uint64_t available() const { return available_memory(files_); }
  fs::path root_;
  MemoryFiles files_;
};

TEST_F(AvailableMemory, CountsWhatThePageCacheGivesBack) { EXPECT_EQ(available(), 4 * kMiB); }

TEST_F(AvailableMemory, OneGibibyteWhereTheMachineSaysNothing) {
  fs::remove_all(root_);
  EXPECT_EQ(available(), 1024 * kMiB);
}

TEST_F(AvailableMemory, EveryLevelOfUnifiedGroupsAndBothLimits) {
  write("membership", "0::/outer/inner");
  write("mount/outer/inner/memory.max", "max");
  write("mount/outer/inner/memory.current", "1048576");
  write("mount/outer/memory.max", "4194304");
  write("mount/outer/memory.current", "1048576");
  EXPECT_EQ(available(), 3 * kMiB);
  write("mount/outer/memory.high", "3145728");  // above it the kernel makes the process wait
  EXPECT_EQ(available(), 2 * kMiB);
  write("mount/outer/memory.stat", "anon 1\ninactive_file 1048576");
  EXPECT_EQ(available(), 3 * kMiB);
}

TEST_F(AvailableMemory, OldGroupsAloneOrMountedTogether) {
  write("membership", "5:memory:/docker/abc\n3:cpu:/docker/abc");
  write("mount/memory/memory.limit_in_bytes", "2097152");
  write("mount/memory/memory.usage_in_bytes", "2097153");
  EXPECT_EQ(available(), 0u);
  write("mount/memory/memory.limit_in_bytes", "3145729");
  EXPECT_EQ(available(), 1 * kMiB);
  write("membership", "5:hugetlb,memory:/job");
  write("mount/hugetlb,memory/job/memory.limit_in_bytes", "1048576");
  write("mount/hugetlb,memory/job/memory.usage_in_bytes", "524288");
  EXPECT_EQ(available(), kMiB / 2);
}

}  // namespace
}  // namespace hmmjit
