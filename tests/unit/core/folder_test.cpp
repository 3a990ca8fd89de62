// Names in a folder, and files of the kernel.
#include "core/folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/read_only_file.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;

TEST(Folder, NamesAreSorted) {
  const test_support::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  fs::create_directories(folder / "b" / "within");
  std::ofstream(folder / "c.txt") << "c";
  std::ofstream(folder / ".a") << "a";
  const auto names = names_in_folder(folder);
  const auto none = names_in_folder(folder / "b" / "within");
  const auto file = names_in_folder(folder / "c.txt");
  fs::remove_all(folder);
  const auto missing = names_in_folder(folder);
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{".a", "b", "c.txt"}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kInput);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kInput);
  EXPECT_EQ(missing.error().where, folder.string());
}

// The size of such files is 0.
TEST(ReadOnlyFile, FilesOfTheKernelAreReadToTheirEnd) {
  ASSERT_EQ(fs::file_size("/proc/self/status"), 0u);
  errno = EINTR;  // of an earlier call: says nothing about the end of a file
  const std::string status = read_kernel_file("/proc/self/status");
  EXPECT_TRUE(status.starts_with("Name:"));
  EXPECT_NE(status.find("\nThreads:"), status.npos);
  EXPECT_EQ(read_kernel_file("/proc/self/no such file"), "");
}

TEST(ReadOnlyFile, Beginning) {
  const test_support::TemporaryFolder folder;
  const std::string path = folder.write("file", "0123456789");
  const auto some = read_beginning(path, 4), all = read_beginning(path, 40);
  ASSERT_TRUE(some && all);
  EXPECT_EQ(*some, "0123");
  EXPECT_EQ(*all, "0123456789");
}

}  // namespace
}  // namespace hmmjit
