#include "core/threads.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace hmmjit {
namespace {

TEST(StartableThreads, AreThoseAskedForWhereNothingForbidsIt) {
  EXPECT_EQ(startable_threads(0), 0);
  EXPECT_EQ(startable_threads(-1), 0);
  EXPECT_EQ(startable_threads(5), 5);
  EXPECT_EQ(startable_threads(3), 3);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Accessible bytes from `address` to the end of its mapping.
std::size_t accessible_from(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* rest = nullptr;
    const auto begin = std::strtoull(line.c_str(), &rest, 16);
    const auto end = std::strtoull(rest + 1, &rest, 16);
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= wanted && wanted < end) return rest[1] == 'r' && rest[2] == 'w' ? end - wanted : 0;
  }
  return 0;
}

TEST(ReachAheadInHeap, GrowsTheHeapOfTheCallingThreadOnce) {
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  std::size_t before = 0, after = 0;
  std::thread([&] {
    void* first = std::malloc(64);
    before = accessible_from(first);
    reach_ahead_in_heap(kBytes);
    void* second = std::malloc(64);
    after = accessible_from(second);
    std::free(second);
    std::free(first);
  }).join();
  EXPECT_GT(before, 0u);
  EXPECT_LT(before, kBytes / 2);
  EXPECT_GE(after, kBytes);
}
#endif

}  // namespace
}  // namespace hmmjit
