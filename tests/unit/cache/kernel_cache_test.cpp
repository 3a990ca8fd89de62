#include "cache/kernel_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cache/entry_lock.hpp"
#include "cache_fixture.hpp"

namespace hmmjit::cache {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class KernelCacheTest : public CacheFolderTest {
 protected:
  Settings settings(Mode mode = Mode::kReadWrite) {
    Settings result;
    result.directory = root_;
    result.mode = mode;
    result.lock_wait = std::chrono::milliseconds(2000);
    return result;
  }
  /// Makes `key` with another cache, like an earlier process.
  void store(const CacheKey& key, const Entry& entry = make_entry()) {
    ASSERT_TRUE(KernelCache::open(settings())->publish(key, entry));
  }

  int compiles_ = 0;
  KernelCache::MakeFunction make_ = [this]() -> Result<Entry> {
    ++compiles_;
    return make_entry();
  };
};

TEST_F(KernelCacheTest, SecondProcessFindsWhatTheFirstMade) {
  const CacheKey key = make_key();
  {
    const auto cache = KernelCache::open(settings());
    const auto made = cache->obtain(key, make_);
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_EQ(made->layer, Layer::kNone);
    EXPECT_EQ(cache->obtain(key, make_)->layer, Layer::kMemory);
    EXPECT_EQ(cache->counters().get(Counter::kPublished), 1u);
  }
  const auto cache = KernelCache::open(settings());
  const auto found = cache->obtain(key, make_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layer, Layer::kUser);
  EXPECT_EQ(found->entry->payload, make_entry().payload);
  EXPECT_EQ(compiles_, 1);
  cache->flush_statistics();
  cache->flush_statistics();
  const StoredStatistics stored = read_statistics(*cache->user_store());
  EXPECT_EQ(stored.counters.get(Counter::kUserHits), 1u);
  EXPECT_EQ(stored.counters.get(Counter::kMemoryHits), 1u);
  EXPECT_EQ(stored.counters.get(Counter::kMisses), 1u);
  EXPECT_EQ(stored.counters.get(Counter::kPublished), 1u);
}

// Files of killed processes are removed at the next publication, even far below the limit.
TEST_F(KernelCacheTest, FirstPublicationOfAProcessSweepsStaleTemporaries) {
  const CacheKey key = make_key();
  store(key);
  const auto cache = KernelCache::open(settings());
  const std::string folder =
      fs::path(cache->user_store()->entry_path(key.digest())).parent_path().string();
  write_file(folder + "/tmp-1-0-old", "half");
  set_age(folder + "/tmp-1-0-old", 3700);
  ASSERT_TRUE(cache->publish(key, make_entry()));
  EXPECT_FALSE(fs::exists(folder + "/tmp-1-0-old"));
  write_file(folder + "/tmp-1-0-old", "half");
  set_age(folder + "/tmp-1-0-old", 3700);
  ASSERT_TRUE(cache->publish(key, make_entry()));
  EXPECT_TRUE(fs::exists(folder + "/tmp-1-0-old")) << "one sweep a process";
}

// Acceptance test C for the cache: rebuilt once, counted, reported.
TEST_F(KernelCacheTest, DamagedEntryIsRebuiltOnce) {
  const CacheKey key = make_key();
  store(key);
  const std::string path = open_store(root_).entry_path(key.digest());
  const std::string good = read_file(path);
  for (const std::size_t at : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(~damaged[at]);
    write_file(path, damaged);
    compiles_ = 0;
    std::vector<std::string> warned;
    Settings with_callback = settings();
    with_callback.on_warning = [&](const Error& error) { warned.push_back(error.to_string()); };
    const auto cache = KernelCache::open(with_callback);
    const auto obtained = cache->obtain(key, make_);
    ASSERT_TRUE(obtained);
    EXPECT_EQ(obtained->entry->payload, make_entry().payload);
    EXPECT_EQ(compiles_, 1);
    EXPECT_EQ(cache->counters().get(Counter::kBadEntries), 1u);
    ASSERT_EQ(warned.size(), 1u);
    EXPECT_THAT(warned[0], HasSubstr(path));
    EXPECT_EQ(read_file(path), good) << "stored again, byte for byte";
  }
}

TEST_F(KernelCacheTest, RefusedEntryIsDeletedAndNotServedAgain) {
  const CacheKey key = make_key();
  store(key);
  const auto cache = KernelCache::open(settings());
  cache->find(key);
  const Lookup lookup = cache->find(key);  // from memory: still knows its file
  ASSERT_EQ(lookup.layer, Layer::kMemory);
  cache->discard(key, lookup);
  EXPECT_FALSE(fs::exists(open_store(root_).entry_path(key.digest())));
  EXPECT_FALSE(cache->find(key));
  EXPECT_EQ(cache->counters().get(Counter::kRefusedEntries), 1u);
  ASSERT_TRUE(cache->obtain(key, make_));
  EXPECT_EQ(compiles_, 1);
}

// One refusal removes an entry made by this process from memory and disk, for any look-up that the
// consumer kept.
TEST_F(KernelCacheTest, RefusedEntryJustMadeLeavesMemoryAndDisk) {
  const CacheKey key = make_key();
  const auto cache = KernelCache::open(settings());
  for (const bool keep_first : {true, false}) {
    const auto made = cache->obtain(key, make_);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->layer, Layer::kNone);
    EXPECT_EQ(made->origin, Layer::kUser);
    const std::string path = open_store(root_).entry_path(key.digest());
    ASSERT_TRUE(fs::exists(path));
    cache->discard(key, keep_first ? *made : cache->find(key));
    EXPECT_FALSE(fs::exists(path));
    EXPECT_FALSE(cache->find(key));
  }
  EXPECT_EQ(compiles_, 2);
  EXPECT_EQ(cache->counters().get(Counter::kRefusedEntries), 2u);
}

TEST_F(KernelCacheTest, RefusalOfAnUnstoredEntryForgetsIt) {
  const CacheKey key = make_key();
  Settings off = settings();
  off.mode = Mode::kOff;
  const auto cache = KernelCache::open(off);
  const auto made = cache->obtain(key, make_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->origin, Layer::kNone);
  ASSERT_TRUE(cache->find(key)) << "kept in memory";
  cache->discard(key, *made);
  EXPECT_FALSE(cache->find(key));
}

TEST_F(KernelCacheTest, RefusedEntryOfAReadOnlyLayerIsSkipped) {
  const CacheKey key = make_key();
  store(key);
  Settings layered = settings();
  layered.system_directory = root_;
  layered.directory = base_ + "/user";
  const auto cache = KernelCache::open(layered);
  const Lookup lookup = cache->find(key);
  ASSERT_EQ(lookup.layer, Layer::kSystem);
  cache->discard(key, lookup);
  EXPECT_FALSE(cache->find(key));
  EXPECT_TRUE(fs::exists(open_store(root_).entry_path(key.digest())));
  ASSERT_TRUE(cache->obtain(key, make_));
  EXPECT_TRUE(cache->find(key));
}

TEST_F(KernelCacheTest, ARepairedEntryIsServedAfterARefusal) {
  const CacheKey key = make_key();
  store(key);
  Settings no_memory = settings();
  no_memory.max_memory_bytes = 0;
  const auto cache = KernelCache::open(no_memory);
  cache->discard(key, cache->find(key));
  ASSERT_TRUE(cache->obtain(key, make_));
  EXPECT_EQ(cache->find(key).layer, Layer::kUser) << "even if its inode number was used before";
}

TEST_F(KernelCacheTest, SystemLayerComesFirstAndIsNeverWritten) {
  const CacheKey key = make_key();
  store(key);
  const auto before = fs::last_write_time(root_);
  Settings layered = settings();
  layered.system_directory = root_;
  layered.directory = base_ + "/user";
  const auto cache = KernelCache::open(layered);
  EXPECT_EQ(cache->find(key).layer, Layer::kSystem);
  ASSERT_TRUE(cache->obtain(make_key("second"), make_));
  EXPECT_TRUE(fs::exists(base_ + "/user"));
  EXPECT_EQ(open_store(root_).scan().entries.size(), 1u);
  EXPECT_EQ(fs::last_write_time(root_), before);
}

TEST_F(KernelCacheTest, ModeOffTouchesNoFile) {
  const auto cache = KernelCache::open(settings(Mode::kOff));
  ASSERT_TRUE(cache->obtain(make_key(), make_));
  EXPECT_EQ(cache->obtain(make_key(), make_)->layer, Layer::kMemory);
  EXPECT_EQ(compiles_, 1);
  EXPECT_FALSE(fs::exists(root_));
  EXPECT_TRUE(cache->warnings().empty());
}

TEST_F(KernelCacheTest, ModeRoReadsAndNeverWrites) {
  store(make_key());
  const std::string before = read_file(root_ + "/statistics");
  {
    const auto cache = KernelCache::open(settings(Mode::kReadOnly));
    EXPECT_EQ(cache->find(make_key()).layer, Layer::kUser);
    ASSERT_TRUE(cache->obtain(make_key("new"), make_));
  }
  EXPECT_EQ(open_store(root_).scan().entries.size(), 1u);
  EXPECT_EQ(read_file(root_ + "/statistics"), before);
}

TEST_F(KernelCacheTest, ModeRefreshMakesAgainAndReplaces) {
  store(make_key(), make_entry(100, 1));
  const auto cache = KernelCache::open(settings(Mode::kRefresh));
  ASSERT_TRUE(cache->obtain(make_key(), [] { return Result<Entry>(make_entry(100, 2)); }));
  EXPECT_EQ(cache->obtain(make_key(), make_)->layer, Layer::kMemory) << "made once per process";
  EXPECT_EQ(open_store(root_).find(make_key()).entry.payload, make_entry(100, 2).payload);
}

// Acceptance test O at this layer: strict mode never compiles, and names the nearest entry.
TEST_F(KernelCacheTest, ModeStrictServesHitsAndExplainsMisses) {
  store(make_key());
  const auto cache = KernelCache::open(settings(Mode::kStrict));
  EXPECT_FALSE(cache->may_compile());
  ASSERT_TRUE(cache->obtain(make_key(), make_));
  const auto missing = cache->obtain(make_key("__global__ void kernel() {}\n", "sm_120"), make_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kCompile);
  EXPECT_THAT(missing.error().message, HasSubstr("target: 'sm_90' became 'sm_120'"));
  EXPECT_THAT(missing.error().remedy, HasSubstr("import"));
  EXPECT_EQ(compiles_, 0);
}

TEST_F(KernelCacheTest, FailedCompilesAreRememberedInProcessAndNeverStored) {
  int tries = 0;
  const auto failing = [&]() -> Result<Entry> {
    ++tries;
    return fail(ErrorCode::kCompile, "syntax error", "ssv.cu:3");
  };
  const auto cache = KernelCache::open(settings());
  for (int i = 0; i < 3; ++i) {
    const auto result = cache->obtain(make_key(), failing);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().where, "ssv.cu:3");
  }
  EXPECT_EQ(tries, 1);
  EXPECT_TRUE(open_store(root_).scan().entries.empty());
  Entry empty = make_entry();
  empty.payload.clear();
  EXPECT_FALSE(cache->publish(make_key(), empty));
  EXPECT_FALSE(cache->find(make_key()));
  EXPECT_TRUE(open_store(root_).scan().entries.empty());
}

TEST_F(KernelCacheTest, InterruptedCompilesMayBeTriedAgain) {
  const auto cache = KernelCache::open(settings());
  ASSERT_FALSE(cache->obtain(
      make_key(), []() -> Result<Entry> { return fail(ErrorCode::kInterrupted, "stopped"); }));
  EXPECT_TRUE(cache->obtain(make_key(), make_));
}

TEST_F(KernelCacheTest, ThreadsWithOneKeyCompileOnce) {
  for (const Mode mode : {Mode::kReadWrite, Mode::kOff}) {
    const auto cache = KernelCache::open(settings(mode));
    std::atomic<int> compiles = 0;
    std::vector<std::jthread> threads;
    std::atomic<int> good = 0;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto result = cache->obtain(make_key(), [&]() -> Result<Entry> {
          ++compiles;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          return make_entry();
        });
        if (result && result->entry->payload == make_entry().payload) ++good;
      });
    }
    threads.clear();
    EXPECT_EQ(compiles, 1);
    EXPECT_EQ(good, 8);
  }
}

TEST_F(KernelCacheTest, LockTimeoutCompilesAnyway) {
  store(make_key("something else"));  // makes the folder
  const CacheKey key = make_key();
  const auto held = FileLock::acquire(root_ + "/lock", EntryStore::lock_offset(key.digest()),
                                      std::chrono::milliseconds(0), 0600);
  ASSERT_TRUE(held);
  Settings impatient = settings();
  impatient.lock_wait = std::chrono::milliseconds(30);
  const auto cache = KernelCache::open(impatient);
  ASSERT_TRUE(cache->obtain(key, make_));
  EXPECT_EQ(compiles_, 1);
  EXPECT_EQ(cache->counters().get(Counter::kLockTimeouts), 1u);
  EXPECT_EQ(cache->counters().get(Counter::kPublished), 1u);
  // A holder that does not finish is waited for once: waits for many kernels must not add up.
  const CacheKey second = make_key("second");
  const auto also_held =
      FileLock::acquire(root_ + "/lock", EntryStore::lock_offset(second.digest()),
                        std::chrono::milliseconds(0), 0600);
  ASSERT_TRUE(also_held);
  Settings patient = settings();
  patient.lock_wait = std::chrono::milliseconds(300);
  const auto other = KernelCache::open(patient);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(other->lock(key).exclusive());
  const auto waited = std::chrono::steady_clock::now() - begun;
  EXPECT_GE(waited, std::chrono::milliseconds(299));  // the remaining time is in whole ms
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(other->lock(second).exclusive());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, waited + std::chrono::seconds(10));
  // A cache of its own, so that it would wait: until it is stopped.
  const auto stopped = KernelCache::open(settings());
  EXPECT_FALSE(stopped->lock(key, [] { return true; }).exclusive());
  EXPECT_EQ(stopped->counters().get(Counter::kLockTimeouts), 0u);
  // The next wait is as patient as ever: it goes on until it is stopped at its second look.
  int looks = 0;
  EXPECT_FALSE(stopped->lock(second, [&] { return ++looks == 2; }).exclusive());
  EXPECT_EQ(looks, 2);
  // Another key does not wait.
  EXPECT_TRUE(cache->lock(make_key("unrelated")).exclusive());
}

// Acceptance test E: any failure of the store is a warning and a counter.
TEST_F(KernelCacheTest, StoreFailuresAreWarningsNeverErrors) {
  struct Case {
    const char* name;
    std::function<void(Settings&)> arrange;
    Counter counter;
  };
  const Case cases[] = {
      {"no folder known", [](Settings& s) { s.directory.clear(); }, Counter::kStoreUnavailable},
      {"path is a file", [](Settings& s) { write_file(s.directory, "file"); },
       Counter::kStoreUnavailable},
      {"parent is a file",
       [](Settings& s) {
         write_file(s.directory, "file");
         s.directory += "/below";
       },
       Counter::kStoreUnavailable},
      {"group may write",
       [](Settings& s) {
         fs::create_directories(s.directory);
         ASSERT_EQ(::chmod(s.directory.c_str(), 0770), 0);
       },
       Counter::kStoreUnavailable},
      {"unmakeable", [](Settings& s) { s.directory = "/proc/hmmjit/kernels"; },
       Counter::kPublishFailures},
      {"full disk",
       [](Settings& s) {
         s.before_publish_step = [](PublishStep step) {
           return step == PublishStep::kWriteSecondHalf ? ENOSPC : 0;
         };
       },
       Counter::kPublishFailures},
      {"other file system",
       [](Settings& s) {
         s.before_publish_step = [](PublishStep step) {
           return step == PublishStep::kRename ? EXDEV : 0;
         };
       },
       Counter::kPublishFailures},
      {"larger than the cap", [](Settings& s) { s.max_bytes = 1000; }, Counter::kPublishFailures},
  };
  int index = 0;
  for (const Case& test : cases) {
    Settings broken = settings();
    broken.directory = base_ + "/case" + std::to_string(index++);
    test.arrange(broken);
    int warnings = 0;
    broken.on_warning = [&](const Error& error) {
      ++warnings;
      EXPECT_FALSE(error.remedy.empty()) << test.name;
    };
    const auto cache = KernelCache::open(broken);
    for (const char* source : {"one", "two"}) {
      const auto obtained = cache->obtain(make_key(source), make_);
      ASSERT_TRUE(obtained) << test.name << ": " << obtained.error().to_string();
      EXPECT_EQ(obtained->entry->payload, make_entry().payload);
      EXPECT_TRUE(cache->find(make_key(source))) << test.name << ": kept in memory";
    }
    EXPECT_EQ(warnings, 1) << test.name << ": once per kind";
    EXPECT_GE(cache->counters().get(test.counter), 1u) << test.name;
    EXPECT_EQ(cache->counters().get(Counter::kPublished), 0u) << test.name;
  }
}

TEST_F(KernelCacheTest, CapHoldsOverManyShortProcesses) {
  Settings small = settings();
  small.max_bytes = 600'000;
  for (int i = 0; i < 60; ++i) {
    const auto cache = KernelCache::open(small);
    const CacheKey key = make_key("source " + std::to_string(i));
    ASSERT_TRUE(cache->publish(key, make_entry(20'000, static_cast<std::uint64_t>(i))));
    EXPECT_EQ(open_store(root_).find(key).state, FindResult::State::kHit) << "the newest stays";
    EXPECT_LE(open_store(root_).scan().allocated_total, small.max_bytes);
  }
  EXPECT_GT(read_statistics(open_store(root_)).counters.get(Counter::kEvicted), 20u);
  EXPECT_LT(read_statistics(open_store(root_)).counters.get(Counter::kTrims), 30u) << "amortised";
}

TEST_F(KernelCacheTest, MemoryLayerGivesUpWhatWasUsedLongestAgo) {
  Settings small = settings(Mode::kOff);
  small.max_memory_bytes = 10'000;  // three entries
  const auto cache = KernelCache::open(small);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(cache->publish(make_key(std::to_string(i)), make_entry(3000)));
  ASSERT_TRUE(cache->find(make_key("0")));
  ASSERT_TRUE(cache->publish(make_key("3"), make_entry(3000)));
  EXPECT_TRUE(cache->find(make_key("0")));
  EXPECT_FALSE(cache->find(make_key("1")));
}

TEST_F(KernelCacheTest, GuardMayOutliveTheCache) {
  auto cache = KernelCache::open(settings());
  auto guard = cache->lock(make_key());
  EXPECT_TRUE(guard.exclusive());
  cache.reset();
}

}  // namespace
}  // namespace hmmjit::cache
