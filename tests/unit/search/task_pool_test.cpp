#include "search/task_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace hmmjit {
namespace {

TEST(TaskPool, RunsEverythingInPriorityOrderOnOneThread) {
  TaskPool pool(1);
  std::vector<int> order;
  pool.run([&] {
    pool.submit(TaskClass::kFilter, 2, [&] { order.push_back(5); });
    pool.submit(TaskClass::kFilter, 1, [&] { order.push_back(4); });
    pool.submit(TaskClass::kDomain, 9, [&] { order.push_back(3); });
    pool.submit(TaskClass::kLargeDomain, -10, [&] { order.push_back(2); });
    pool.submit(TaskClass::kLargeDomain, -20, [&] {
      order.push_back(1);
      pool.submit(TaskClass::kControl, 0, [&] { order.push_back(11); });
    });
  });
  EXPECT_EQ(order, (std::vector<int>{1, 11, 2, 3, 4, 5}));
}

TEST(TaskPool, KeepsToItsThreads) {
  for (const int threads : {1, 2, 7}) {
    TaskPool pool(threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> running{0}, most{0}, done{0};
    pool.run([&] {
      for (int i = 0; i < 200; ++i) {
        pool.submit(TaskClass::kFilter, i, [&] {
          const int now = ++running;
          int before = most;
          while (before < now && !most.compare_exchange_weak(before, now)) {
          }
          {
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
          }
          // On a busy machine one thread could be through before another has begun.
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

}  // namespace
}  // namespace hmmjit
