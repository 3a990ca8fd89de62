#include "compile/diagnostics.hpp"

#include <gtest/gtest.h>

namespace hmmjit::compile {
namespace {

using Severity = Diagnostic::Severity;

TEST(Diagnostics, FrontEndMessages) {
  const auto list = parse_diagnostics(
      "ssv/warp_striped.cu(41): error: identifier \"x\" is undefined\n"
      "    int y = x;\n"
      "            ^\n"
      "\n"
      "common/a(1).cuh(7): warning #177-D: variable \"z\" was declared but never referenced\n"
      "1 error detected in the compilation of \"ssv/warp_striped.cu\".\n");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].severity, Severity::kError);
  EXPECT_EQ(list[0].file, "ssv/warp_striped.cu");
  EXPECT_EQ(list[0].line, 41);
  EXPECT_EQ(list[0].message, "identifier \"x\" is undefined\n    int y = x;\n            ^");
  EXPECT_EQ(list[1].severity, Severity::kWarning);
  EXPECT_EQ(list[1].file, "common/a(1).cuh");
  EXPECT_EQ(list[1].line, 7);
  EXPECT_EQ(list[1].message, "variable \"z\" was declared but never referenced");
}

TEST(Diagnostics, DriverAndPtxasMessages) {
  const auto list = parse_diagnostics(
      "nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
      "ptxas info    : Used 32 registers\n"
      "ptxas application ptx input, line 9; error   : Unknown symbol 'q'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].message, "invalid value for --gpu-architecture (-arch)");
  EXPECT_EQ(list[0].file, "");
  for (const Diagnostic& d : list) EXPECT_EQ(d.severity, Severity::kError);
}

TEST(Diagnostics, FirstErrorInOneLine) {
  EXPECT_EQ(first_error("a.cu(3): warning #1-D: w\nb.cu(4): error: broken\n   x\n"),
            "b.cu:4: error: broken");
  EXPECT_EQ(first_error("something else\nmore"), "something else");
  EXPECT_EQ(first_error(""), "");
  EXPECT_TRUE(parse_diagnostics("").empty());
  EXPECT_TRUE(parse_diagnostics("(): \n): : error\n(12): \nx(): error: y").empty());
}

}  // namespace
}  // namespace hmmjit::compile
