#include "core/threads.hpp"

#include <gtest/gtest.h>

#include <new>

namespace hmmjit {
namespace {

TEST(CanStartThreads, WhereNothingForbidsIt) {
  EXPECT_TRUE(can_start_threads(0));
  EXPECT_TRUE(can_start_threads(5));
}

TEST(Threads, OneThatRunsOutOfMemoryEnds) {
  bool told = false;
  thread_until_out_of_memory(
      "test", [] { throw std::bad_alloc(); }, [&] { told = true; })
      .join();
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace hmmjit
