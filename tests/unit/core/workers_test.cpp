#include "core/workers.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hmmjit {
namespace {

TEST(Workers, KeepToTheirNumber) {
  for (const int threads : {0, 1, 2, 7}) {
    const auto most = static_cast<std::size_t>(std::max(threads, 1));
    Workers workers(threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    const auto seen_all = [&] {
      const std::lock_guard lock(mutex);
      return seen.size() == most;
    };
    workers.run([&] {
      {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(seen.insert(std::this_thread::get_id()).second);
      }
      for (int n = 0; n < 3; ++n) workers.add();
      // All that may be started work at the same time.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!seen_all() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
    EXPECT_EQ(seen.size(), most);
    EXPECT_EQ(workers.threads(), static_cast<int>(most));
  }
}

TEST(Workers, TheFirstExceptionComesBackOnceAllHaveEnded) {
  Workers workers(5);
  std::atomic<int> begun{0}, ended{0};
  EXPECT_THROW(workers.run([&] {
    workers.add();
    if (++begun == 3) throw std::bad_alloc();
    while (begun < 5) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++ended;
  }),
               std::bad_alloc);
  EXPECT_EQ(ended, 4);
}

// Whatever the timing of threads, a worker that ends may have added another.
TEST(Workers, EndAfterTheLastThatWasAdded) {
  for (int round = 0; round < 200; ++round) {
    Workers workers(6);
    std::atomic<int> begun{0}, ended{0};
    workers.run([&] {
      if ((round + begun++) % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      workers.add();
      ++ended;
    });
    ASSERT_EQ(begun, 6);
    ASSERT_EQ(ended, 6);
  }
}

// With a limit on address space, in a separate process: as many threads as fit.
[[noreturn]] void run_with_room_for_few_threads() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * 4096 + (std::size_t{40} << 20);  // four stacks of 8 MiB
  pthread_attr_t defaults;
  pthread_attr_init(&defaults);
  pthread_attr_setstacksize(&defaults, std::size_t{8} << 20);
  pthread_setattr_default_np(&defaults);  // whatever ulimit -s says
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  std::atomic<int> refusals{0}, begun{0}, done{0};
  Workers workers(64, 0, [&] { ++refusals; });
  workers.run([&] {
    while (begun++ < 500) {
      workers.add();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      ++done;
    }
  });
  const int threads = workers.threads();
  const bool right = done == 500 && refusals == 1 && threads > 1 && threads < 10;
  std::_Exit(right ? 0 : 100 + threads);
}

TEST(WorkersDeathTest, GoOnWithTheThreadsTheyGet) {
#ifndef __has_feature  // Clang's way to tell
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the address space of a sanitizer cannot be limited";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_with_room_for_few_threads(), testing::ExitedWithCode(0), "");
}

TEST(ForEachIndex, CallsWithEachOnceAndThrowsTheFirstFailure) {
  for (const int threads : {0, 1, 5}) {
    std::vector<std::atomic<int>> times(100);
    for_each_index(threads, times.size(), [&](std::size_t i) { ++times[i]; });
    for (const auto& count : times) EXPECT_EQ(count, 1);
    for_each_index(threads, 0, [](std::size_t) { FAIL(); });
    std::atomic<int> calls = 0;
    EXPECT_THROW(for_each_index(threads, 10'000,
                                [&](std::size_t i) {
                                  ++calls;
                                  if (i == 3) throw std::out_of_range("the fourth");
                                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                }),
                 std::out_of_range);
    EXPECT_LT(calls, threads < 2 ? 5 : 9'000);  // no further ones begin
  }
}

}  // namespace
}  // namespace hmmjit
