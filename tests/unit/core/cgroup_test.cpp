// Limits of nested control groups, in generated trees.
#include "core/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = {root_ / "self", root_ / "mount"};
    fs::create_directories(files_.mount);
  }
  void member_of(const std::string& lines) { std::ofstream(files_.membership) << lines; }
  void put(const std::string& path, const std::string& text) {
    const fs::path file = files_.mount + "/" + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  test_support::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
  CgroupFiles files_;
};

TEST_F(CgroupTest, NoGroupsNoLimits) {
  EXPECT_EQ(cgroup_cores(files_), 0);
  EXPECT_FALSE(cgroup_memory_left(files_));
  member_of("0::/a/b\n");
  EXPECT_EQ(cgroup_cores(files_), 0);
  EXPECT_FALSE(cgroup_memory_left(files_));
}

TEST_F(CgroupTest, TightestLevelOfVersion2) {
  member_of("0::/slice/job\n");
  put("slice/job/memory.max", "max");
  put("slice/job/memory.current", "100");
  put("slice/memory.max", "1000");
  put("slice/memory.current", "400");
  put("memory.current", "5000");
  EXPECT_EQ(cgroup_memory_left(files_), 600u);
  put("slice/job/memory.max", "500");
  EXPECT_EQ(cgroup_memory_left(files_), 400u);
  put("slice/job/memory.high", "300");
  EXPECT_EQ(cgroup_memory_left(files_), 200u);
  put("slice/job/memory.current", "800");  // above its limit: nothing left
  EXPECT_EQ(cgroup_memory_left(files_), 0u);
  put("slice/job/memory.stat", "anon 50\ninactive_file 650\nactive_file 9");  // reclaimable
  EXPECT_EQ(cgroup_memory_left(files_), 150u);

  put("slice/job/cpu.max", "max 100000");
  put("slice/cpu.max", "250000 100000");
  EXPECT_EQ(cgroup_cores(files_), 2.5);
  put("slice/job/cpu.max", "50000 100000");
  EXPECT_EQ(cgroup_cores(files_), 0.5);
}

TEST_F(CgroupTest, TightestLevelOfVersion1) {
  member_of("12:memory:/docker/x\n11:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n0::/\n");
  put("memory/docker/x/memory.limit_in_bytes", "3000");
  put("memory/docker/x/memory.usage_in_bytes", "1000");
  put("memory/docker/x/memory.stat", "inactive_file 1\ntotal_inactive_file 300");
  put("memory/docker/memory.limit_in_bytes", "9223372036854771712");
  put("memory/docker/memory.usage_in_bytes", "1000");
  EXPECT_EQ(cgroup_memory_left(files_), 2300u);
  put("memory/docker/memory.limit_in_bytes", "1200");
  EXPECT_EQ(cgroup_memory_left(files_), 200u);
  put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1");
  put("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_cores(files_), 0);
  put("cpu/docker/cpu.cfs_quota_us", "300000");
  put("cpu/docker/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_cores(files_), 3);
}

// A container often sees the host's path, but mounts its own group as the root.
TEST_F(CgroupTest, OwnGroupMountedAsTheRoot) {
  member_of("0::/kubepods/pod7/c9\n");
  put("memory.max", "2000");
  put("memory.current", "500");
  put("cpu.max", "400000 100000");
  EXPECT_EQ(cgroup_memory_left(files_), 1500u);
  EXPECT_EQ(cgroup_cores(files_), 4);
  member_of("0::/../../other\n");
  EXPECT_EQ(cgroup_memory_left(files_), 1500u);
}

TEST_F(CgroupTest, Version1MountedAsTheRootOrTogether) {
  member_of("5:memory:/docker/abc\n3:cpu:/docker/abc\n");
  put("memory/memory.limit_in_bytes", "1000");
  put("memory/memory.usage_in_bytes", "1001");
  EXPECT_EQ(cgroup_memory_left(files_), 0u);
  put("memory/memory.limit_in_bytes", "1601");
  EXPECT_EQ(cgroup_memory_left(files_), 600u);
  member_of("5:hugetlb,memory:/job\n");
  put("hugetlb,memory/job/memory.limit_in_bytes", "1000");
  put("hugetlb,memory/job/memory.usage_in_bytes", "500");
  EXPECT_EQ(cgroup_memory_left(files_), 500u);
}

TEST_F(CgroupTest, OnlyNoLimitOfVersion1) {
  member_of("3:memory:/\n");
  put("memory/memory.limit_in_bytes", "9223372036854771712");
  put("memory/memory.usage_in_bytes", "1000");
  EXPECT_FALSE(cgroup_memory_left(files_));
}

}  // namespace
}  // namespace hmmjit
