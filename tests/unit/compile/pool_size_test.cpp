#include <gtest/gtest.h>

#include "compile/kernel_provider.hpp"

namespace hmmjit::compile {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(CompileThreads, FollowCoresAndMemory) {
  EXPECT_EQ(compile_threads(3, 1, 0), 3);
  EXPECT_EQ(compile_threads(0, 2, 1024 * kMiB), 2);
  EXPECT_EQ(compile_threads(0, 64, 64 * 1024 * kMiB), 12);
  EXPECT_EQ(compile_threads(0, 8, 300 * kMiB), 3);
  EXPECT_EQ(compile_threads(0, 8, 10 * kMiB), 1);
}

}  // namespace
}  // namespace hmmjit::compile
