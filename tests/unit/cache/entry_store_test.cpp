#include "cache/entry_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "cache/cache_statistics.hpp"
#include "cache/entry_lock.hpp"
#include "cache/maintenance.hpp"
#include "cache_fixture.hpp"

namespace hmmjit::cache {
namespace {

namespace fs = std::filesystem;
using State = FindResult::State;
using ::testing::HasSubstr;

class EntryStoreTest : public CacheFolderTest {};

std::uint64_t du(const std::string& path) {
  std::string command = "du -s -B1 '" + path + "'";
  FILE* pipe = ::popen(command.c_str(), "r");
  unsigned long long bytes = 0;
  EXPECT_EQ(std::fscanf(pipe, "%llu", &bytes), 1);
  ::pclose(pipe);
  return bytes;
}

TEST_F(EntryStoreTest, PublishesAndFinds) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  EXPECT_EQ(store.find(key).state, State::kMiss);
  EXPECT_FALSE(fs::exists(root_)) << "a look-up makes no folder";
  const auto added = store.publish(key, make_entry());
  ASSERT_TRUE(added) << added.error().to_string();
  EXPECT_GT(*added, 0u);
  const FindResult found = store.find(key, Attachments::kLoad);
  ASSERT_EQ(found.state, State::kHit) << found.reason;
  EXPECT_EQ(found.entry, make_entry());
  EXPECT_EQ(store.find(make_key("other")).state, State::kMiss);
  const std::string hex = key.digest().hex();
  EXPECT_TRUE(fs::exists(root_ + "/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".entry"));
  EXPECT_THAT(read_file(root_ + "/CACHEDIR.TAG"),
              ::testing::StartsWith("Signature: 8a477f597d28d172789f06886806bc55"));
}

TEST_F(EntryStoreTest, OwnerOnlyByDefault) {
  const mode_t before = ::umask(0);
  const EntryStore store = open_store(base_ + "/new/parents/kernels");
  ASSERT_TRUE(store.publish(make_key(), make_entry()));
  ::umask(before);
  for (const auto& item : fs::recursive_directory_iterator(base_ + "/new")) {
    EXPECT_EQ(static_cast<int>(item.status().permissions()) & 077, 0) << item.path();
  }
}

// Acceptance test I.
TEST_F(EntryStoreTest, GroupAndOtherWritableFoldersAreRefused) {
  ASSERT_TRUE(open_store(root_).publish(make_key(), make_entry()));
  ASSERT_EQ(::chmod(root_.c_str(), 0770), 0);
  const auto refused = EntryStore::open(root_, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("group may write"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("chmod g-w"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("HMMJIT_CACHE_ALLOW_GROUP"));
  StoreOptions opted_in;
  opted_in.allow_group = true;
  EXPECT_TRUE(EntryStore::open(root_, opted_in));
  ASSERT_EQ(::chmod(root_.c_str(), 0702), 0);
  EXPECT_FALSE(EntryStore::open(root_, {}));
  EXPECT_FALSE(EntryStore::open(root_, opted_in)) << "others are never trusted";
}

TEST_F(EntryStoreTest, GroupSharingKeepsGroupRightsWhateverTheUmask) {
  const mode_t before = ::umask(077);
  StoreOptions options;
  options.allow_group = true;
  root_ = base_ + "/team/kernels";
  const EntryStore store = open_store(root_, options);
  ASSERT_TRUE(store.publish(make_key(), make_entry()));
  ASSERT_TRUE(
      FileLock::acquire(store.lock_path(), 0, std::chrono::milliseconds(0), store.file_mode()));
  ::umask(before);
  EXPECT_EQ(store.find(make_key()).state, State::kHit);
  struct stat info {};
  ASSERT_EQ(::stat(store.entry_path(make_key().digest()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  ASSERT_EQ(::stat(store.lock_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  // The group reaches the folder, but may not write next to it.
  for (const auto& [folder, mode] : {std::pair(root_, 02770u), {base_ + "/team", 02710u}}) {
    ASSERT_EQ(::stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode) << folder;
  }
}

// A folder made by hand, without setgid.
TEST_F(EntryStoreTest, SharedFilesBelongToTheGroupOfTheFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root is sure to have another group";
  ASSERT_TRUE(fs::create_directory(root_));
  ASSERT_EQ(::chmod(root_.c_str(), 0770), 0);
  ASSERT_EQ(::chown(root_.c_str(), 0, 12345), 0);
  StoreOptions options;
  options.allow_group = true;
  const EntryStore store = open_store(root_, options);
  ASSERT_TRUE(store.publish(make_key(), make_entry()));
  ASSERT_TRUE(trim(store, 1 << 20));  // makes the files of locks and statistics
  int items = 0;
  for (const auto& item : fs::recursive_directory_iterator(root_)) {
    struct stat info {};
    ASSERT_EQ(::stat(item.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, 12345u) << item.path();
    ++items;
  }
  EXPECT_EQ(items, 5);
}

TEST_F(EntryStoreTest, ForeignFilesAreNotTrusted) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  ASSERT_TRUE(store.publish(key, make_entry()));
  const std::string path = store.entry_path(key.digest());
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_EQ(store.find(key).state, State::kBad) << "group-writable entry";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(store.find(key).state, State::kHit);
  fs::rename(path, path + ".elsewhere");
  fs::create_symlink(path + ".elsewhere", path);
  EXPECT_NE(store.find(key).state, State::kHit) << "a link, although to a good entry";
  fs::rename(path + ".elsewhere", path);
  EXPECT_EQ(store.find(key).state, State::kHit);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(store.find(key).state, State::kBad) << "another user's entry";
    ASSERT_EQ(::chown(root_.c_str(), 12345, 0), 0);
    EXPECT_FALSE(EntryStore::open(root_, {})) << "another user's folder";
  }
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  EXPECT_NE(store.find(key).state, State::kHit);
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(store.find(key).state, State::kHit) << "must not hang on a pipe";
}

TEST_F(EntryStoreTest, RemovalSparesAReplacement) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  write_file(store.entry_path(key.digest()), "damaged");
  const FindResult bad = store.find(key);
  ASSERT_EQ(bad.state, State::kBad);
  ASSERT_TRUE(store.publish(key, make_entry()));  // another process has repaired it
  EXPECT_FALSE(store.remove(key.digest(), bad.identity));
  EXPECT_EQ(store.find(key).state, State::kHit);
}

// Acceptance test D on disk.
TEST_F(EntryStoreTest, ForgedNamesAreNotServed) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  const CacheKey other = make_key("other source");
  write_file(store.entry_path(key.digest()), *encode_entry(other, make_entry()));
  EXPECT_EQ(store.find(key).state, State::kBad);
  EXPECT_EQ(store.find(other).state, State::kMiss);
}

// Acceptance test B without processes: after a fault at each step, there is no temporary file and
// no damaged entry, and the next publication works.
TEST_F(EntryStoreTest, FaultAtEveryStepIsReportedAndLeavesNothingBroken) {
  const CacheKey key = make_key();
  for (int step = 0; step <= static_cast<int>(PublishStep::kDone); ++step) {
    for (const int fault : {ENOSPC, EXDEV}) {
      StoreOptions options;
      options.before_step = [&](PublishStep now) {
        return static_cast<int>(now) == step ? fault : 0;
      };
      const std::string root = base_ + "/f" + std::to_string(step) + "-" + std::to_string(fault);
      const auto published = open_store(root, options).publish(key, make_entry());
      ASSERT_FALSE(published) << step;
      EXPECT_EQ(published.error().code, ErrorCode::kOutput);
      EXPECT_FALSE(published.error().remedy.empty());
      const EntryStore store = open_store(root);
      EXPECT_TRUE(store.scan().temporaries.empty()) << step;
      EXPECT_NE(store.find(key).state, State::kBad) << step;
      ASSERT_TRUE(store.publish(key, make_entry()));
      EXPECT_EQ(store.find(key).state, State::kHit);
    }
  }
}

TEST_F(EntryStoreTest, FolderRemovedDuringPublicationIsMadeAgain) {
  const CacheKey key = make_key();
  for (const PublishStep at : {PublishStep::kOpenTemporary, PublishStep::kRename}) {
    int times = 0;
    StoreOptions options;
    options.before_step = [&](PublishStep now) {
      if (now == at && times++ == 0) fs::remove_all(root_);
      return 0;
    };
    const auto published = open_store(root_, options).publish(key, make_entry());
    EXPECT_TRUE(published) << published.error().to_string();
    EXPECT_EQ(open_store(root_).find(key).state, State::kHit);
    fs::remove_all(root_);
  }
}

TEST_F(EntryStoreTest, HitsAreStampedHourly) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  ASSERT_TRUE(store.publish(key, make_entry()));
  const std::string path = store.entry_path(key.digest());
  const auto age = [&] {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return std::time(nullptr) - info.st_mtim.tv_sec;
  };
  set_age(path, 1800);
  EXPECT_EQ(store.find(key).state, State::kHit);
  EXPECT_GE(age(), 1800);
  set_age(path, 3700);
  StoreOptions read_only;
  read_only.access = Access::kReadOnly;
  EXPECT_EQ(open_store(root_, read_only).find(key).state, State::kHit);
  EXPECT_GE(age(), 3700) << "a read-only store stamps nothing";
  const FindResult hit = store.find(key);
  EXPECT_LT(age(), 60);
  EXPECT_TRUE(store.remove(key.digest(), hit.identity)) << "the stamp keeps the identity valid";
  ASSERT_TRUE(store.publish(key, make_entry()));
  set_age(path, -7200);
  store.find(key);
  EXPECT_GE(age(), -60) << "a stamp from the future is corrected";
}

// Acceptance test H.
TEST_F(EntryStoreTest, TrimKeepsTheCapAsDuCountsAndTheMostRecent) {
  const EntryStore store = open_store(root_);
  ASSERT_TRUE(store.prepare());
  std::vector<CacheKey> keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back(make_key("source " + std::to_string(i)));
    // Written directly: 200 syncs would take seconds.
    write_file(store.entry_path(keys.back().digest()),
               *encode_entry(keys.back(), make_entry(9000, static_cast<std::uint64_t>(i))));
    set_age(store.entry_path(keys.back().digest()), 2000 - i);
  }
  EXPECT_EQ(store.scan().allocated_total, du(root_));
  // Using an old entry makes it recent.
  set_age(store.entry_path(keys[0].digest()), 100);
  const std::uint64_t cap = std::uint64_t{1} << 20;
  ASSERT_GT(du(root_), cap);
  const auto report = trim(store, cap);
  ASSERT_TRUE(report);
  EXPECT_LE(du(root_), cap * 8 / 10 + 8192);  // the statistics file is not counted
  EXPECT_LE(du(root_), cap);
  EXPECT_EQ(store.scan().allocated_total, du(root_));
  EXPECT_GT(report->entries_removed, 50u);
  EXPECT_GT(du(root_), cap / 2) << "one pass removes no more than needed";
  // Exactly the most recently used entries remain.
  bool still_there = false;
  for (int i = 1; i < 200; ++i) {
    const bool hit = store.find(keys[i]).state == State::kHit;
    EXPECT_TRUE(hit || !still_there) << "a newer entry went before an older one: " << i;
    still_there = still_there || hit;
  }
  EXPECT_TRUE(still_there);
  EXPECT_EQ(store.find(keys[0]).state, State::kHit);
  const StoredStatistics statistics = read_statistics(store);
  EXPECT_EQ(statistics.counters.get(Counter::kEvicted), report->entries_removed);
  EXPECT_EQ(statistics.counters.get(Counter::kTrims), 1u);
}

TEST_F(EntryStoreTest, StaleTemporariesAreSweptYoungOnesKept) {
  const EntryStore store = open_store(root_);
  const CacheKey key = make_key();
  ASSERT_TRUE(store.publish(key, make_entry()));
  const std::string folder = fs::path(store.entry_path(key.digest())).parent_path().string();
  write_file(folder + "/tmp-1-0-old", "half");
  write_file(root_ + "/tmp-1-0-old", "half");
  write_file(folder + "/tmp-1-1-young", "half");
  write_file(root_ + "/README", "a user's file");
  set_age(folder + "/tmp-1-0-old", 3700);
  set_age(root_ + "/tmp-1-0-old", 3700);
  set_age(root_ + "/README", 99999);
  const auto report = trim(store, std::uint64_t{1} << 30);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->temporaries_removed, 2u);
  EXPECT_TRUE(fs::exists(folder + "/tmp-1-1-young"));
  EXPECT_TRUE(fs::exists(root_ + "/README"));
  EXPECT_EQ(store.find(key).state, State::kHit);
}

TEST_F(EntryStoreTest, FilesFromTheFutureAreOld) {
  const EntryStore store = open_store(root_);
  for (const char* source : {"a", "b"})
    ASSERT_TRUE(store.publish(make_key(source), make_entry(90'000)));
  write_file(root_ + "/tmp-1-0-future", "half");
  set_age(root_ + "/tmp-1-0-future", -2 * 86400);
  set_age(store.entry_path(make_key("a").digest()), -2 * 86400);
  const auto report = trim(store, 150'000);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->temporaries_removed, 1u);
  EXPECT_EQ(report->entries_removed, 1u);
  EXPECT_EQ(store.find(make_key("b")).state, State::kHit);
}

TEST_F(EntryStoreTest, StatisticsTextRoundTripsAndDamageGivesZeros) {
  StoredStatistics statistics;
  statistics.counters.add(Counter::kUserHits, 12);
  statistics.estimated_bytes = 77;
  const std::string text = statistics.to_text();
  const StoredStatistics parsed = StoredStatistics::from_text(text);
  EXPECT_EQ(parsed.counters.get(Counter::kUserHits), 12u);
  EXPECT_EQ(parsed.estimated_bytes, 77u);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(StoredStatistics::from_text(text.substr(0, length)).to_text(),
              StoredStatistics().to_text());
  }
}

}  // namespace
}  // namespace hmmjit::cache
