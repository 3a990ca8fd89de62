#include "core/task_pool.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hmmjit {
namespace {

TEST(TaskPool, RunsTasksInTheOrderOfSubmissionOnOneThread) {
  TaskPool pool(1);
  std::vector<int> order;
  pool.run([&] {
    pool.submit([&] {
      order.push_back(1);
      pool.submit([&] { order.push_back(3); });
    });
    pool.submit([&] { order.push_back(2); });
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TaskPool, KeepsToItsThreads) {
  for (const int threads : {1, 2, 7}) {
    TaskPool pool(threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> running{0}, most{0}, done{0};
    pool.run([&] {
      for (int i = 0; i < 200; ++i) {
        pool.submit([&] {
          const int now = ++running;
          int before = most;
          while (before < now && !most.compare_exchange_weak(before, now)) {
          }
          {
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
          }
          // On a busy machine, one thread could finish before another begins.
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
          while (threads > 1 && most == 1 && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          --running;
          ++done;
        });
      }
    });
    EXPECT_EQ(done, 200);
    EXPECT_LE(most, threads);
    EXPECT_LE(seen.size(), static_cast<std::size_t>(threads));
    if (threads > 1) {
      EXPECT_GT(most, 1);
    }
  }
}

TEST(TaskPool, OutOfMemoryComesBackToTheCaller) {
  TaskPool pool(2);
  EXPECT_THROW(pool.run([] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(TaskPool, WhatWasNotBegunWhenATaskFailedNeverIs) {
  TaskPool pool(3);
  std::atomic<int> run{0};
  EXPECT_THROW(pool.run([&] {
    pool.submit([] { throw std::runtime_error("first"); });
    for (int i = 0; i < 1000; ++i)
      pool.submit([&] {
        ++run;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      });
  }),
               std::runtime_error);
  EXPECT_LT(run, 1000);
  run = 0;
  pool.run([&] { pool.submit([&] { ++run; }); });
  EXPECT_EQ(run, 1);
}

// Every task runs once, for any submitter and any timing of threads.
TEST(TaskPool, RandomTreesOfTasksAreRunOnce) {
  std::minstd_rand rng(1);
  for (int round = 0; round < 100; ++round) {
    TaskPool pool(1 + static_cast<int>(rng() % 6));
    std::vector<std::atomic<int>> times(300);
    std::atomic<std::size_t> next{0};
    const auto most_children = static_cast<unsigned>(1 + rng() % 4);
    std::function<void(unsigned)> grow = [&](unsigned seed) {
      std::minstd_rand mine(seed);
      if (mine() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mine() % 200));
      for (auto i = mine() % most_children + 1; i > 0; --i) {
        const std::size_t index = next++;
        if (index >= times.size()) return;
        pool.submit([&, index, seed = static_cast<unsigned>(mine())] {
          ++times[index];
          grow(seed);
        });
      }
    };
    pool.run([&] { grow(static_cast<unsigned>(round)); });
    for (std::size_t i = 0; i < std::min(next.load(), times.size()); ++i) ASSERT_EQ(times[i], 1);
  }
}

// With a limit on address space, in a separate process: as many threads as fit.
[[noreturn]] void run_with_room_for_few_threads() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * 4096 + (std::size_t{40} << 20);  // four stacks of 8 MiB
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  std::atomic<int> refusals{0}, done{0};
  TaskPool pool(64, 0, [&] { ++refusals; });
  pool.run([&] {
    for (int i = 0; i < 500; ++i)
      pool.submit([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++done;
      });
  });
  const bool right = done == 500 && refusals == 1 && pool.threads() > 1 && pool.threads() < 10;
  std::_Exit(right ? 0 : 100 + pool.threads());
}

TEST(TaskPoolDeathTest, GoesOnWithTheThreadsItGets) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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
    EXPECT_THROW(for_each_index(threads, 9,
                                [&](std::size_t i) {
                                  ++calls;
                                  if (i % 2 == 0) throw std::out_of_range("even");
                                }),
                 std::out_of_range);
    EXPECT_EQ(calls, 9);
  }
}

}  // namespace
}  // namespace hmmjit
