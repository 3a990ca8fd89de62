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

NvrtcSearch only_in(const std::string& folder) {
  NvrtcSearch search;
  search.folders = {folder};
  search.system_loader = false;
  return search;
}

TEST(NvrtcLibrary, AbsentCompiler) {
  const auto library = NvrtcLibrary::locate(only_in("/nonexistent"));
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kCompile);
  EXPECT_THAT(library.error().message, HasSubstr("no run-time compiler found"));
  EXPECT_THAT(library.error().remedy, HasSubstr("HMMJIT_NVRTC_DIR"));
}

TEST(NvrtcLibrary, CompilerWithoutBuiltins) {
  const auto library = NvrtcLibrary::locate(only_in(FAKE_NVRTC_FOLDER));
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kCompile);
  EXPECT_THAT(library.error().message, HasSubstr("libnvrtc-builtins.so.13.9"));
  EXPECT_THAT(library.error().remedy, HasSubstr("both libraries belong in one folder"));
}

TEST(NvrtcLibrary, NoneNewerThanDemanded) {
  NvrtcSearch search = only_in(FAKE_NVRTC_FOLDER);  // version 13
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
    NvrtcSearch search = only_in(folder.path().string());
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
