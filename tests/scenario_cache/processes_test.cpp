// Acceptance tests A (many processes), B (kill -9 at each step of a publication), E (unwritable
// stores), and a mixed stress run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cache/kernel_cache.hpp"
#include "cache/maintenance.hpp"
#include "pretend_compiler.hpp"
#include "tests/unit/cache/cache_fixture.hpp"

namespace hmmjit::cache {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using State = FindResult::State;
using Environment = std::map<std::string, std::string>;

::pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                      const std::string& output, const std::string& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(name + "=" + value);
  std::vector<char*> variables;
  for (std::string& line : lines) variables.push_back(line.data());
  variables.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_APPEND;
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), flags, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), flags, 0600);
  ::pid_t process = -1;
  EXPECT_EQ(::posix_spawn(&process, command[0].c_str(), &actions, nullptr, arguments.data(),
                          variables.data()),
            0);
  ::posix_spawn_file_actions_destroy(&actions);
  return process;
}

/// Exit status, or 1000 + signal.
int wait_for(::pid_t process) {
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

std::size_t count_lines(const std::string& text) {
  std::size_t lines = 0;
  for (char c : text) lines += c == '\n' ? 1 : 0;
  return lines;
}

class CacheProcessesTest : public CacheFolderTest {
 protected:
  void SetUp() override {
    CacheFolderTest::SetUp();
    log_ = base_ + "/compiles";
    environment_ = {{"HMMJIT_CACHE_DIR", root_}, {"HMMJIT_CACHE_SYSTEM_DIR", ""}};
  }

  struct Work {
    int milliseconds = 0;
    int kill_step = -1;
    int first = 0;
    int keys = 1;
    int rounds = 1;
  };
  ::pid_t start(const Work& work) {
    return start_program(
        {CACHE_WORKER, log_, std::to_string(work.milliseconds), std::to_string(work.kill_step),
         std::to_string(work.first), std::to_string(work.keys), std::to_string(work.rounds)},
        environment_, base_ + "/out", base_ + "/err");
  }
  int run(const Work& work) { return wait_for(start(work)); }
  std::size_t compiles() { return count_lines(read_file(log_)); }
  std::string errors() { return read_file(base_ + "/err"); }

  std::string log_;
  Environment environment_;
};

// Acceptance test A.
TEST_F(CacheProcessesTest, ProcessesOnAnEmptyCacheCompileOnce) {
  for (const int processes : {2, 16}) {
    fs::remove_all(root_);
    fs::remove(log_);
    std::vector<::pid_t> started;
    for (int i = 0; i < processes; ++i) started.push_back(start({.milliseconds = 200}));
    for (const ::pid_t process : started) EXPECT_EQ(wait_for(process), 0) << errors();
    EXPECT_EQ(compiles(), 1u) << processes << " processes";
    const EntryStore store = open_store(root_);
    EXPECT_EQ(store.scan().entries.size(), 1u);
    EXPECT_TRUE(store.scan().temporaries.empty());
    const StoredStatistics statistics = read_statistics(store);
    EXPECT_EQ(statistics.counters.get(Counter::kPublished), 1u);
    // Counting gives up if the statistics stay locked for a second (a loaded machine): hits may be
    // lost, never invented.
    const auto hits = statistics.counters.get(Counter::kUserHits);
    EXPECT_LE(hits, static_cast<unsigned>(processes) - 1);
    EXPECT_GE(hits, 1u);
  }
}

TEST_F(CacheProcessesTest, WithoutLocksDuplicatesAreBoundedAndAllSucceed) {
  fs::create_directories(root_ + "/lock");  // no lock file can be opened there
  fs::permissions(root_, fs::perms::owner_all);
  constexpr int kProcesses = 16;
  std::vector<::pid_t> started;
  for (int i = 0; i < kProcesses; ++i) started.push_back(start({.milliseconds = 50}));
  for (const ::pid_t process : started) EXPECT_EQ(wait_for(process), 0) << errors();
  EXPECT_GE(compiles(), 1u);
  EXPECT_LE(compiles(), static_cast<std::size_t>(kProcesses));
  EXPECT_EQ(open_store(root_).find(pretend_key("length 0")).state, State::kHit);
  EXPECT_TRUE(open_store(root_).scan().temporaries.empty());
}

TEST_F(CacheProcessesTest, AKilledHolderIsReplacedAtOnce) {
  const ::pid_t holder = start({.milliseconds = 60'000});
  while (compiles() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const ::pid_t waiter = start({});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(compiles(), 1u) << "the second process waits";
  const auto killed = std::chrono::steady_clock::now();
  ::kill(holder, SIGKILL);
  EXPECT_EQ(wait_for(holder), 1000 + SIGKILL);
  EXPECT_EQ(wait_for(waiter), 0) << errors();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(2));
  EXPECT_EQ(compiles(), 2u);
}

// Acceptance test B.
TEST_F(CacheProcessesTest, KillAtEveryStepOfAPublication) {
  for (int step = 0; step <= static_cast<int>(PublishStep::kDone); ++step) {
    fs::remove_all(root_);
    fs::remove(log_);
    ASSERT_EQ(run({.kill_step = step}), 1000 + SIGKILL) << step;
    ASSERT_EQ(compiles(), 1u);
    const EntryStore store = open_store(root_);
    const bool visible = step > static_cast<int>(PublishStep::kRename);
    const bool temporary = step > static_cast<int>(PublishStep::kOpenTemporary) && !visible;
    EXPECT_EQ(store.scan().temporaries.size(), temporary ? 1u : 0u) << step;
    EXPECT_EQ(store.find(pretend_key("length 0")).state, visible ? State::kHit : State::kMiss);

    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run({}), 0) << errors();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "stale lock";
    EXPECT_EQ(compiles(), visible ? 1u : 2u) << step;
    EXPECT_EQ(store.find(pretend_key("length 0")).state, State::kHit);
    EXPECT_EQ(read_statistics(store).counters.get(Counter::kBadEntries), 0u);

    ASSERT_TRUE(trim(store, std::uint64_t{1} << 30, std::chrono::seconds(0)));
    EXPECT_TRUE(store.scan().temporaries.empty()) << "swept once old enough";
  }
}

// Publishing, hitting, trimming, damaging and clearing at the same time: no process ever fails or
// gets a wrong kernel.
TEST_F(CacheProcessesTest, StressWithTrimsDamageAndClears) {
  environment_["HMMJIT_CACHE_MAX_SIZE"] = "150K";
  std::vector<::pid_t> started;
  for (int i = 0; i < 5; ++i) started.push_back(start({.first = i * 3, .keys = 12, .rounds = 12}));
  const EntryStore store = open_store(root_);
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    const StoreScan scan = store.scan();
    if (scan.entries.empty()) continue;
    const StoredFile& victim = scan.entries[static_cast<std::size_t>(i) % scan.entries.size()];
    std::error_code ignored;  // the processes work in the same folder
    if (i % 4 == 0) {
      fs::remove_all(fs::path(victim.path).parent_path(), ignored);
    } else if (i % 4 == 1) {
      const std::string temporary = base_ + "/damaged";
      write_file(temporary, read_file(victim.path).substr(0, victim.size / 2));
      fs::rename(temporary, victim.path, ignored);
    }
  }
  for (const ::pid_t process : started) EXPECT_EQ(wait_for(process), 0) << errors();
  trim(store, 150 << 10);
  EXPECT_LE(store.scan().allocated_total, std::uint64_t{150} << 10);
  const StoredStatistics statistics = read_statistics(store);
  EXPECT_GT(statistics.counters.get(Counter::kEvicted), 0u);
  EXPECT_GT(statistics.counters.get(Counter::kUserHits), 0u);
}

/// Runs `body` in a child process, since its effects cannot be undone (rights, limits, mounts).
int in_child(const std::function<int()>& body) {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return wait_for(child);
}

/// Mounts something that this process alone sees; false: it lacks the rights.
bool mount_privately(const std::string& source, const std::string& at, const char* type,
                     unsigned long flags, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(source.c_str(), at.c_str(), type, flags, options) == 0;
}
constexpr int kNoRights = 77;

/// 0 if a kernel was made and found again in memory, and the failure was counted with one warning.
int obtain_despite(const std::string& root, const std::string& log, Counter counter) {
  Settings settings;
  settings.directory = root;
  int warnings = 0;
  settings.on_warning = [&](const Error&) { ++warnings; };
  const auto cache = KernelCache::open(settings);
  const CacheKey key = pretend_key("despite");
  for (int i = 0; i < 2; ++i) {
    const auto got =
        cache->obtain(key, [&] { return pretend_compile(key, log, std::chrono::milliseconds(0)); });
    if (!got) return 10;
    if (got->entry->payload != pretend_payload(key)) return 11;
  }
  if (cache->counters().get(counter) != 1) return 12;
  if (warnings != 1) return 13;
  return cache->counters().get(Counter::kPublished) == 0 ? 0 : 14;
}

// A cache on a tmpfs of 16 KiB, mounted with these flags, of which so many bytes are used.
void expect_despite_mount(const std::string& base, unsigned long flags, std::size_t ballast) {
  const std::string small = base + "/small";
  fs::create_directories(small);
  const int result = in_child([&] {
    if (!mount_privately("none", small, "tmpfs", flags, "size=16k,mode=700")) return kNoRights;
    if (ballast > 0) write_file(small + "/ballast", std::string(ballast, 'x'));
    return obtain_despite(small + "/kernels", base + "/log", Counter::kPublishFailures);
  });
  if (result == kNoRights) GTEST_SKIP() << "mounting a tmpfs needs rights this run lacks";
  EXPECT_EQ(result, 0);
}

// Faults of file systems shared by many nodes. In each case every process gets the right kernel
// (the worker compares every byte) and ends, and the remaining entry is whole.
class SharedFileSystemTest : public CacheProcessesTest {
 protected:
  // `fault`: as in tests/faults/faults.c; empty: none.
  void let_happen(const std::string& fault, int milliseconds = 0) {
    environment_.erase("LD_PRELOAD");
    if (fault.empty()) return;
    environment_["LD_PRELOAD"] = FAULTS_LIBRARY;
    environment_["HMMJIT_FAULT"] = fault;
    environment_["HMMJIT_FAULT_MS"] = std::to_string(milliseconds);
  }
  // Runs several processes that need one kernel; returns the number that made it.
  std::size_t run_several(int processes, int milliseconds) {
    fs::remove(log_);
    std::vector<::pid_t> started;
    for (int i = 0; i < processes; ++i) started.push_back(start({.milliseconds = milliseconds}));
    for (const ::pid_t process : started) EXPECT_EQ(wait_for(process), 0) << errors();
    return fs::exists(log_) ? compiles() : 0;
  }
  // A process without faults finds the entry, and no other file is left.
  void expect_whole() {
    let_happen("");
    EXPECT_EQ(run_several(1, 0), 0u);
    EXPECT_EQ(open_store(root_).find(pretend_key("length 0")).state, State::kHit);
    EXPECT_TRUE(open_store(root_).scan().temporaries.empty());
  }
};

TEST_F(SharedFileSystemTest, RefusesLocks) {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, ESTALE, EIO}) {
    SCOPED_TRACE(std::strerror(error));
    fs::remove_all(root_);
    let_happen("lock:1:" + std::to_string(error) + ":always");
    const std::size_t made = run_several(6, 50);
    EXPECT_GE(made, 1u);
    EXPECT_LE(made, 6u);
    expect_whole();
  }
}

// As on NFS with local_lock: every node has separate locks.
TEST_F(SharedFileSystemTest, GrantsTheSameLockToEveryNode) {
  let_happen("lock:1:pretend:always");
  const std::size_t made = run_several(8, 100);
  EXPECT_GE(made, 2u) << "the locks were no locks";
  EXPECT_LE(made, 8u);
  expect_whole();
}

TEST_F(SharedFileSystemTest, KeepsALockForEver) {
  environment_["HMMJIT_CACHE_LOCK_WAIT_MS"] = "100";
  let_happen("lock:1:" + std::to_string(EAGAIN) + ":always");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run({.keys = 20}), 0) << errors();
  // One timeout for all kernels, and one second for the statistics.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(compiles(), 20u);
  expect_whole();
}

TEST_F(SharedFileSystemTest, RenamesSlowly) {
  let_happen("rename:1:slow:always", 400);
  // The lock is held until the entry has its name.
  EXPECT_EQ(run_several(6, 20), 1u);
  expect_whole();
  // Without locks, renames of several processes overlap.
  fs::remove_all(root_);
  fs::create_directories(root_ + "/lock");
  fs::permissions(root_, fs::perms::owner_all);
  let_happen("rename:1:slow:always", 400);
  EXPECT_EQ(run_several(6, 20), 6u);
  expect_whole();
}

// For some seconds a node sees stale attributes of a file, or no file.
TEST_F(SharedFileSystemTest, ShowsAttributesOfBefore) {
  for (const std::string function : {"fstat", "lstat", "stat"}) {
    for (const std::string& when : {std::string("1:stale"), std::string("2:stale"),
                                    std::string("3:stale"), std::string("1:stale:always")}) {
      SCOPED_TRACE(function + ":" + when);
      let_happen("");
      run_several(1, 0);
      let_happen(function + ":" + when);
      EXPECT_LE(run_several(1, 0), 1u);
      let_happen("");
      EXPECT_LE(run_several(1, 0), 1u) << "an entry that looked damaged may be gone";
      expect_whole();
    }
  }
  // Proves the fault effective: with a size of zero no entry is whole.
  let_happen("fstat:1:stale:always");
  EXPECT_EQ(run_several(1, 0), 1u);
}

TEST_F(SharedFileSystemTest, LosesHandlesAndNames) {
  for (const std::string function : {"open", "fstat", "read", "rename", "fsync", "lstat", "stat"}) {
    for (const int error : {ESTALE, ENOENT, EIO}) {
      for (int call = 1; call <= 6; ++call) {
        SCOPED_TRACE(function + " " + std::to_string(call) + " " + std::strerror(error));
        if (call % 2 == 0) fs::remove_all(root_);
        let_happen(function + ":" + std::to_string(call) + ":" + std::to_string(error));
        EXPECT_EQ(run({}), 0) << errors();
        let_happen("");
        EXPECT_EQ(run({}), 0) << errors();
        expect_whole();
      }
    }
  }
}

// Two mounts of one folder, as on two nodes, and a link to it.
TEST_F(SharedFileSystemTest, IsMountedTwice) {
  const std::string other = base_ + "/mounted", link = base_ + "/link";
  fs::create_directories(root_);
  fs::permissions(root_, fs::perms::owner_all);
  fs::create_directories(other);
  fs::create_directory_symlink(root_, link);
  const int result = in_child([&] {
    if (!mount_privately(root_, other, nullptr, MS_BIND, nullptr)) return kNoRights;
    std::vector<::pid_t> started;
    for (int i = 0; i < 9; ++i) {
      environment_["HMMJIT_CACHE_DIR"] = i % 3 == 0 ? root_ : i % 3 == 1 ? other : link;
      started.push_back(start({.milliseconds = 100}));
    }
    int failed = 0;
    for (const ::pid_t process : started) failed += wait_for(process) != 0 ? 1 : 0;
    return failed;
  });
  if (result == kNoRights) GTEST_SKIP() << "mounting a folder twice needs rights this run lacks";
  EXPECT_EQ(result, 0) << errors();
  EXPECT_EQ(compiles(), 1u);
  expect_whole();
}

// Acceptance test E.
TEST_F(CacheProcessesTest, FileSizeLimit) {
  EXPECT_EQ(in_child([&] {
              const ::rlimit limit{4096, 4096};
              std::signal(SIGXFSZ, SIG_IGN);
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              return obtain_despite(root_, base_ + "/log", Counter::kPublishFailures);
            }),
            0);
  EXPECT_TRUE(open_store(root_).scan().temporaries.empty());
  EXPECT_TRUE(open_store(root_).scan().entries.empty());
}

TEST_F(CacheProcessesTest, FullDisk) { expect_despite_mount(base_, 0, 8192); }
TEST_F(CacheProcessesTest, ReadOnlyFileSystem) { expect_despite_mount(base_, MS_RDONLY, 0); }

TEST_F(CacheProcessesTest, ReadOnlyHome) {
  const std::string home = base_ + "/home";
  fs::create_directories(home);
  ASSERT_EQ(::chmod(base_.c_str(), 0711), 0);
  ASSERT_EQ(::chmod(home.c_str(), 0555), 0);
  write_file(base_ + "/log", "");
  ASSERT_EQ(::chmod((base_ + "/log").c_str(), 0666), 0);
  EXPECT_EQ(in_child([&] {
              // The superuser ignores rights.
              if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
              return obtain_despite(home + "/.cache/hmmjit", base_ + "/log",
                                    Counter::kPublishFailures);
            }),
            0);
  EXPECT_TRUE(fs::is_empty(home));
}

TEST_F(CacheProcessesTest, HomeUnsetRunsInMemoryWithOneWarning) {
  environment_ = {};
  EXPECT_EQ(run({.keys = 3}), 0);
  EXPECT_EQ(compiles(), 3u);
  EXPECT_EQ(count_lines(errors()), 1u) << errors();
  EXPECT_THAT(errors(), HasSubstr("set HMMJIT_CACHE_DIR or HOME"));
}

TEST_F(CacheProcessesTest, PathIsAFile) {
  write_file(root_, "a file");
  EXPECT_EQ(run({.keys = 3}), 0);
  EXPECT_EQ(count_lines(errors()), 1u) << errors();
  EXPECT_THAT(errors(), HasSubstr("not a folder"));
  EXPECT_EQ(read_file(root_), "a file");
}

}  // namespace
}  // namespace hmmjit::cache
