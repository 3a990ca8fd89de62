// Acceptance test N, compiler: separate messages for absent and incomplete compilers.
#include "compile/nvrtc_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/folder.hpp"

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

TEST(NvrtcLibrary, NoneNewerThanDemanded) {
  NvrtcSearch search;
  search.folders = {FAKE_NVRTC_FOLDER};  // version 13
  search.system_loader = false;
  search.highest_major = 12;
  EXPECT_FALSE(NvrtcLibrary::locate(search));
}

TEST(NvrtcLibrary, DriverOlderThanTheCompiler) {
  test_support::TemporaryFolder folder;
  namespace fs = std::filesystem;
  for (const fs::path& file : fs::directory_iterator(FAKE_NVRTC_FOLDER)) {
    fs::copy(file, folder.path() / file.filename());
  }
  folder.write("libnvrtc-builtins.so.13.9", "");
  const auto named = [&](int driver_major) {
    NvrtcSearch search;
    search.folders = {folder.path().string()};
    search.system_loader = false;
    search.driver_major = driver_major;
    const auto library = NvrtcLibrary::locate(search);
    return library ? (*library)->path() : library.error().to_string();
  };
  EXPECT_THAT(named(12), HasSubstr("libnvrtc.so.13")) << "the only one";
  fs::copy(folder.path() / "libnvrtc.so.13", folder.path() / "libnvrtc.so.12");
  folder.write("libnvrtc-builtins.so.12.8", "");
  EXPECT_THAT(named(12), HasSubstr("libnvrtc.so.12"));
  EXPECT_THAT(named(13), HasSubstr("libnvrtc.so.13"));
  EXPECT_THAT(named(0), HasSubstr("libnvrtc.so.13"));
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
