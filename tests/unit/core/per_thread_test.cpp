#include "core/per_thread.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hmmjit {
namespace {

TEST(PerThread, LaterThreadsTakeTheObjectsOfEarlierOnes) {
  PerThread<int> objects;
  objects.local() = 10;
  for (int n = 0; n < 5; ++n) {
    objects.reuse();
    std::jthread one([&] { objects.local() += 1; }), other([&] { objects.local() += 1; });
    objects.local() += 1;
  }
  int sum = 0, count = 0;
  objects.for_each([&](int value) {
    sum += value;
    ++count;
  });
  EXPECT_EQ(sum, 10 + 3 * 5);
  EXPECT_LE(count, 3);
}

}  // namespace
}  // namespace hmmjit
