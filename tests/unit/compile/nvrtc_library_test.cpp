// Acceptance test N, compiler part: absent and incomplete compilers have messages of their own.
#include "compile/nvrtc_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hmmjit::compile {
namespace {

using testing::HasSubstr;

#if HMMJIT_HAVE_CUDA_HEADERS

TEST(NvrtcLibrary, AbsentCompiler) {
  NvrtcSearch nowhere;
  nowhere.folders = {"/nonexistent"};
  nowhere.system_loader = false;
  const auto library = NvrtcLibrary::locate(nowhere);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kCompile);
  EXPECT_THAT(library.error().message, HasSubstr("no run-time compiler found"));
  EXPECT_THAT(library.error().remedy, HasSubstr("HMMJIT_NVRTC_DIR"));
}

TEST(NvrtcLibrary, CompilerWithoutBuiltins) {
  NvrtcSearch incomplete;
  incomplete.folders = {FAKE_NVRTC_FOLDER};
  incomplete.system_loader = false;
  const auto library = NvrtcLibrary::locate(incomplete);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kCompile);
  EXPECT_THAT(library.error().message, HasSubstr("libnvrtc-builtins.so.13.9"));
  EXPECT_THAT(library.error().remedy, HasSubstr("both libraries belong in one folder"));
}

TEST(NvrtcLibrary, DriverOlderThanTheCompiler) {
  NvrtcSearch search;
  search.folders = {FAKE_NVRTC_FOLDER};  // a 13
  search.system_loader = false;
  search.highest_major = 12;
  EXPECT_FALSE(NvrtcLibrary::locate(search));
}

#else

TEST(NvrtcLibrary, SaysThatItWasNotBuilt) {
  const auto library = NvrtcLibrary::locate();
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr("without the CUDA headers"));
}

#endif

}  // namespace
}  // namespace hmmjit::compile
