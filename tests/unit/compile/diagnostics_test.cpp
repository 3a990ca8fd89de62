#include "compile/diagnostics.hpp"

#include <gmock/gmock.h>

namespace hmmjit::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Diagnostics, FrontEndMessages) {
  EXPECT_THAT(
      errors_in("/ssv/warp_striped.cu(41): error: identifier \"x\" is undefined\n"
                "    int y = x;\n"
                "            ^\n"
                "\n"
                "b.cu(4): warning #177-D: variable \"z\" was declared but never referenced\n"
                "common/a(1).cuh(7): catastrophic error: broken\n"
                "1 error detected in the compilation of \"ssv/warp_striped.cu\".\n"),
      ElementsAre("ssv/warp_striped.cu:41: error: identifier \"x\" is undefined",
                  "common/a(1).cuh:7: error: broken"));
}

TEST(Diagnostics, DriverAndPtxasMessages) {
  EXPECT_THAT(errors_in("nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
                        "ptxas info    : Used 32 registers\n"
                        "ptxas application ptx input, line 9; error   : Unknown symbol 'q'\n"
                        "ptxas fatal   : Ptx assembly aborted due to errors\n"),
              ElementsAre("invalid value for --gpu-architecture (-arch)",
                          "ptxas application ptx input, line 9; error   : Unknown symbol 'q'",
                          "ptxas fatal   : Ptx assembly aborted due to errors"));
}

TEST(Diagnostics, FirstErrorInOneLine) {
  EXPECT_EQ(first_error("a.cu(3): warning #1-D: w\nb.cu(4): error: broken\n   x\n"),
            "b.cu:4: error: broken");
  EXPECT_EQ(first_error("something else\nmore"), "something else");
  EXPECT_EQ(first_error(""), "");
  EXPECT_THAT(errors_in(""), IsEmpty());
  EXPECT_THAT(errors_in("(): \n): : error\n(12): \nx(): error: y"), IsEmpty());
}

}  // namespace
}  // namespace hmmjit::compile
