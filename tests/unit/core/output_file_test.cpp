#include "core/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
using test_support::read_file;

class OutputFileTest : public ::testing::Test {
 protected:
  std::size_t entries() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  test_support::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(OutputFileTest, AppearsOnlyWhenCommitted) {
  const fs::path path = folder_ / "hits.tbl";
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file);
  file->write("rows\n");
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(path), "rows\n");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, AnEmptyFileIsReadThroughAnEarlierDescriptor) {
  const fs::path path = folder_ / "empty";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);  // as mkstemp() does
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file);
  file->write("new");
  EXPECT_EQ(read_file(path), "");
  ASSERT_TRUE(file->commit());
  std::string text(9, '\0');
  EXPECT_EQ(::pread(descriptor, text.data(), text.size(), 0), 3);
  EXPECT_EQ(text.substr(0, 3), "new");
  ::close(descriptor);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, AFileThatIsNoLongerTheEmptyOneIsReplaced) {
  const fs::path path = folder_ / "empty", link = folder_ / "link";
  for (const auto& change : std::vector<std::function<void()>>{[&] { fs::remove(path); },
                                                               [&] {
                                                                 std::ofstream(folder_ / "o")
                                                                     << "x";
                                                                 fs::rename(folder_ / "o", path);
                                                               },
                                                               [&] {
                                                                 std::ofstream(path) << "x";
                                                                 fs::create_hard_link(path, link);
                                                               }}) {
    std::ofstream(path) << "";
    auto file = OutputFile::create(path);
    ASSERT_TRUE(file);
    file->write("new");
    change();
    ASSERT_TRUE(file->commit());
    EXPECT_EQ(read_file(path), "new");
  }
  EXPECT_EQ(read_file(link), "x");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFileTest, AnEmptyFileIsEmptyAgainIfAnotherOutputFails) {
  const fs::path path = folder_ / "empty", other = folder_ / "folder";
  std::ofstream(path) << "";
  auto file = OutputFile::create(path), failing = OutputFile::create(other);
  ASSERT_TRUE(file && failing);
  file->write("new");
  fs::create_directory(other);
  std::array<OutputFile*, 2> files{&*file, &*failing};
  EXPECT_FALSE(OutputFile::publish(files));
  EXPECT_EQ(read_file(path), "");
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
  EXPECT_EQ(read_file(path), "first second");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, WaitsForAPipeThatDoesNotBlock) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  std::size_t got = 0;
  std::thread reader([&] {
    char bytes[4096];
    for (ssize_t n; (n = ::read(ends[0], bytes, sizeof bytes)) > 0;)
      got += static_cast<std::size_t>(n);
  });
  const std::string text(std::size_t{1} << 24, 'x');
  {
    auto file = OutputFile::create("/dev/fd/" + std::to_string(ends[1]));
    ::close(ends[1]);
    file->write(text);
    EXPECT_TRUE(file->commit());
  }
  reader.join();
  ::close(ends[0]);
  EXPECT_EQ(got, text.size());
}

TEST_F(OutputFileTest, TwoOfOneNameKeepTheirTemporariesApart) {
  const fs::path path = folder_ / "hits.tbl";
  auto first = OutputFile::create(path), second = OutputFile::create(path);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(entries(), 2u);  // the first is in use and not removed as abandoned
  first->write("first");
  second->write("second");
  ASSERT_TRUE(first->commit());
  EXPECT_EQ(read_file(path), "first");
  ASSERT_TRUE(second->commit());
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, LinkOfAnotherUserInASharedFolderIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  const fs::path target = folder_ / "target", shared = folder_ / "shared", link = shared / "link";
  std::ofstream(target) << "precious";
  fs::create_directory(shared);
  fs::create_symlink(target, link);
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(OutputFile::create(link));  // others may not write into the folder
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  const auto file = OutputFile::create(link);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kOutput);
  EXPECT_EQ(read_file(target), "precious");
}

TEST_F(OutputFileTest, DanglingLinkMakesItsTarget) {
  const fs::path link = folder_ / "link.tbl", next = folder_ / "next", real = folder_ / "real.tbl";
  fs::create_symlink("next", link);
  fs::create_symlink(real, next);
  auto file = OutputFile::create(link);
  ASSERT_TRUE(file);
  file->write("new");
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(next));
  EXPECT_FALSE(fs::is_symlink(real));
  EXPECT_EQ(read_file(real), "new");
  EXPECT_EQ(entries(), 3u);
}

TEST_F(OutputFileTest, LongestNames) {
  const fs::path path = folder_ / std::string(255, 'n');
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file) << file.error().to_string();
  file->write("rows");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(path), "rows");
  EXPECT_EQ(entries(), 1u);
  EXPECT_FALSE(OutputFile::create(folder_ / std::string(256, 'n')));
  EXPECT_EQ(entries(), 1u);
}

// Root may write into any folder, so an unprivileged process tests it and reports by its status.
TEST_F(OutputFileTest, WritableFileInAFolderThatTakesNone) {
  const fs::path path = folder_ / "hits.tbl";
  std::ofstream(path) << "what was there before";
  fs::permissions(path, fs::perms::all);
  constexpr fs::perms kNobodyWrites = fs::perms{0555};
  fs::permissions(folder_, kNobodyWrites);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(77);
    ::unsetenv("TMPDIR");
    auto file = OutputFile::create(path);
    if (!file) ::_exit(1);
    file->write("xyz");
    if (!file->write_at(0, "a") || read_file(path) != "what was there before") ::_exit(2);
    if (!file->commit()) ::_exit(3);
    auto dropped = OutputFile::create(path);
    dropped->write("never seen");
    ::_exit(read_file(path) == "ayz" ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path), "ayz");
  EXPECT_EQ(entries(), 1u);
}

class CheckOutputs : public OutputFileTest {
 protected:
  // The message, empty on success.
  static std::string refusal(std::vector<NamedFile> outputs, std::vector<NamedFile> inputs = {}) {
    const Status status = check_outputs(outputs, inputs);
    if (status) return {};
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
    return status.error().to_string();
  }
};

TEST_F(CheckOutputs, EmptyNames) {
  EXPECT_NE(refusal({{"--tblout", ""}}).find("--tblout"), std::string::npos);
}

// Several target files may have thousands of outputs: each name is resolved once.
TEST_F(CheckOutputs, ThousandsOfNames) {
  std::vector<NamedFile> outputs, inputs;
  for (int i = 0; i < 3000; ++i) {
    outputs.push_back({"-o", folder_ / ("o" + std::to_string(i))});
    inputs.push_back({"sequences", folder_ / ("i" + std::to_string(i))});
  }
  EXPECT_EQ(refusal(outputs, inputs), "");
  inputs[0].path = outputs.back().path;
  EXPECT_NE(refusal(outputs, inputs), "");
}

TEST_F(CheckOutputs, TheSameFileTwice) {
  const std::string a = folder_ / "a";
  const auto twice = [&](const std::string& first, const std::string& second) {
    return refusal({{"-o", first}, {"--tblout", second}}) != "";
  };
  EXPECT_TRUE(twice(a, a));
  EXPECT_TRUE(twice(a, folder_ / "./a"));
  EXPECT_TRUE(twice(a, folder_ / "../" / folder_.filename() / "a"));
  EXPECT_FALSE(twice(a, folder_ / "b"));
  fs::create_symlink("a", folder_ / "link");
  EXPECT_TRUE(twice(a, folder_ / "link"));
  std::ofstream(a) << "x";
  EXPECT_TRUE(twice(a, a));
  EXPECT_TRUE(twice(a, folder_ / "link"));
  fs::create_hard_link(a, folder_ / "hard");
  EXPECT_TRUE(twice(folder_ / "hard", a));
  EXPECT_FALSE(twice(a, folder_ / "b"));
  for (const char* spared : {"/dev/null", "/dev/stdout", "/dev/fd/1"})
    EXPECT_FALSE(twice(spared, spared));
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(twice(fifo, fifo));
}

TEST_F(CheckOutputs, AnInput) {
  const std::string a = folder_ / "a";
  std::ofstream(a) << "x";
  EXPECT_NE(refusal({{"-o", folder_ / "./a"}}, {{"sequence file", a}}).find("sequence file"),
            std::string::npos);
  EXPECT_EQ(refusal({{"-o", folder_ / "b"}}, {{"sequence file", a}, {"profile file", "-"}}), "");
  EXPECT_EQ(refusal({{"-o", "/dev/null"}}, {{"sequence file", "/dev/null"}}), "");
  // Whatever the input is called.
  const int standard_input = ::dup(STDIN_FILENO);
  const int file = ::open(a.c_str(), O_RDONLY);
  ASSERT_EQ(::dup2(file, STDIN_FILENO), STDIN_FILENO);
  for (const std::string name : {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}) {
    EXPECT_NE(refusal({{"-o", a}}, {{"sequence file", name}}), "") << name;
    EXPECT_EQ(refusal({{"-o", folder_ / "b"}}, {{"sequence file", name}}), "") << name;
  }
  ::dup2(standard_input, STDIN_FILENO);
  ::close(file);
  ::close(standard_input);
}

}  // namespace
}  // namespace hmmjit
