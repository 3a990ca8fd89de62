#include "core/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace hmmjit {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("hmmjit_output_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t entries() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsOnlyWhenCommitted) {
  const fs::path path = folder_ / "hits.tbl";
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file);
  file->write("rows\n");
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read(path), "rows\n");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, SymbolicLinkStaysALink) {
  const fs::path file_path = folder_ / "real.tbl", link = folder_ / "link.tbl";
  std::ofstream(file_path) << "old";
  fs::create_symlink(file_path, link);
  auto file = OutputFile::create(link);
  ASSERT_TRUE(file);
  file->write("new");
  EXPECT_EQ(read(file_path), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read(file_path), "new");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFileTest, NamedDescriptorIsWrittenWhereItStands) {
  const fs::path path = folder_ / "stream";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, "first ", 6), 6);
  auto file = OutputFile::create("/dev/fd/" + std::to_string(descriptor));
  ASSERT_TRUE(file);
  file->write("second");
  ASSERT_TRUE(file->commit());
  ::close(descriptor);
  EXPECT_EQ(read(path), "first second");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, AbandonedFileLeavesTheOldOne) {
  const fs::path path = folder_ / "hits.tbl";
  std::ofstream(path) << "old";
  {
    auto file = OutputFile::create(path);
    ASSERT_TRUE(file);
    file->write("new");
  }
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, DiscardAllRemovesTemporaries) {
  auto file = OutputFile::create(folder_ / "hits.tbl");
  ASSERT_TRUE(file);
  EXPECT_EQ(entries(), 1u);
  OutputFile::discard_all_temporaries();
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputFileTest, ReportsUnwritableFolder) {
  const auto file = OutputFile::create(folder_ / "missing" / "hits.tbl");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kOutput);
}

TEST_F(OutputFileTest, ReportsFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto file = OutputFile::create("/dev/full");
  ASSERT_TRUE(file);
  file->write("x");
  const auto status = file->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOutput);
}

}  // namespace
}  // namespace hmmjit
