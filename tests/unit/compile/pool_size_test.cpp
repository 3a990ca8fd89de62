#include "compile/pool_size.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hmmjit::compile {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

/// A folder that stands for "/".
class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("hmmjit_memory_" + std::to_string(getpid()));
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::uint64_t available() const { return available_memory(root_.string()); }
  fs::path root_;
};

TEST_F(AvailableMemory, CountsWhatThePageCacheGivesBack) { EXPECT_EQ(available(), 4 * kMiB); }

TEST_F(AvailableMemory, NothingKnownIsNoLimit) {
  fs::remove_all(root_);
  EXPECT_EQ(available(), ~std::uint64_t{0});
  EXPECT_EQ(compile_threads(0, 4, available()), 4);
}

TEST_F(AvailableMemory, UnifiedGroupsLimitAtEveryLevel) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
  write("sys/fs/cgroup/outer/memory.max", "3145728\n");
  write("sys/fs/cgroup/outer/memory.current", "2097152\n");
  EXPECT_EQ(available(), 1 * kMiB);
  write("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 1048576\n");
  EXPECT_EQ(available(), 2 * kMiB);
}

TEST_F(AvailableMemory, OldGroupsInAContainer) {
  write("proc/self/cgroup", "5:memory:/docker/abc\n3:cpu:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2097153\n");
  EXPECT_EQ(available(), 0u);
}

TEST(CompileThreads, FollowCoresAndMemory) {
  EXPECT_EQ(compile_threads(3, 1, 0), 3);
  EXPECT_EQ(compile_threads(0, 2, 1024 * kMiB), 2);
  EXPECT_EQ(compile_threads(0, 64, 64 * 1024 * kMiB), 8);
  EXPECT_EQ(compile_threads(0, 8, 300 * kMiB), 3);
  EXPECT_EQ(compile_threads(0, 8, 10 * kMiB), 1);
}

}  // namespace
}  // namespace hmmjit::compile
