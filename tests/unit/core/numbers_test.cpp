#include "core/numbers.hpp"

#include <gtest/gtest.h>

namespace hmmjit {
namespace {

TEST(Numbers, ParsesWholeTokensOnly) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("+42"), 42);
  EXPECT_FALSE(parse_int("42x"));
  EXPECT_FALSE(parse_int(""));
  EXPECT_FALSE(parse_int("++1"));
  EXPECT_DOUBLE_EQ(*parse_real("1e-5"), 1e-5);
  EXPECT_FALSE(parse_real("1,5"));
}

TEST(Numbers, ParsesByteCounts) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("1K"), 1024u);
  EXPECT_EQ(parse_bytes("1.5g"), 1610612736u);
  EXPECT_EQ(parse_bytes("400MiB"), 400u << 20);
  EXPECT_FALSE(parse_bytes("G"));
  EXPECT_FALSE(parse_bytes("-1M"));
  EXPECT_FALSE(parse_bytes("lots"));
}

}  // namespace
}  // namespace hmmjit
