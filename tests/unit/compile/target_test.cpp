#include "compile/target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hmmjit::compile {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::vector<int> kNvrtc13{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

plan::DeviceTraits device_of(int capability) {
  plan::DeviceTraits device = *plan::find_device("H200");
  device.name = "test device";
  device.major = capability / 10;
  device.minor = capability % 10;
  return device;
}

TEST(Target, CubinForAKnownArchitecture) {
  for (const int known : kNvrtc13) {
    const auto target = choose_target(device_of(known), kNvrtc13, "NVRTC 13.0");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->kind, ImageKind::kCubin);
    EXPECT_EQ(target->architecture, "sm_" + std::to_string(known));
    EXPECT_TRUE(target->explanation.empty());
  }
}

// Acceptance test J: a device newer than the compiler.
TEST(Target, NewerDeviceGetsPtxAndTheReason) {
  const auto target = choose_target(device_of(130), kNvrtc13, "NVRTC 13.0");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->kind, ImageKind::kPtx);
  EXPECT_EQ(target->architecture, "compute_121");
  EXPECT_THAT(target->explanation, HasSubstr("sm_130"));
  EXPECT_THAT(target->explanation, HasSubstr("NVRTC 13.0"));
  EXPECT_THAT(target->explanation, HasSubstr("driver"));
}

TEST(Target, SameMajorVersionRunsALowerCubin) {
  const auto target = choose_target(device_of(105), kNvrtc13, "NVRTC 13.0");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->kind, ImageKind::kCubin);
  EXPECT_EQ(target->architecture, "sm_103");
  EXPECT_FALSE(target->explanation.empty());
  // Not across major versions: 9.5 can use 9.0 and 11.5 11.0, but 13.x nothing.
  EXPECT_EQ(choose_target(device_of(95), kNvrtc13, "n")->architecture, "sm_90");
  // Nor that of a Jetson.
  EXPECT_EQ(choose_target(device_of(103), std::vector{90, 100, 101}, "n")->architecture, "sm_100");
}

TEST(Target, OlderDeviceNamesTheCompilerToInstall) {
  const auto target = choose_target(device_of(70), kNvrtc13, "NVRTC 13.0");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, ErrorCode::kCompile);
  EXPECT_THAT(target.error().message, HasSubstr("sm_75 and newer"));
  EXPECT_THAT(target.error().remedy, HasSubstr("NVRTC 12"));
  EXPECT_THAT(target.error().remedy, HasSubstr("HMMJIT_NVRTC_DIR")) << "13 is found first";
  EXPECT_FALSE(choose_target(*plan::find_device("K40"), kNvrtc13, "n"));
  EXPECT_FALSE(choose_target(device_of(90), {}, "n"));
}

TEST(Options, DependOnTheCompilerVersion) {
  const Target target{ImageKind::kCubin, "sm_90", {}};
  const auto old = *compile_options(target, 12, 8), recent = *compile_options(target, 12, 9),
             newest = *compile_options(target, 13, 0);
  EXPECT_EQ(old.front(), "--gpu-architecture=sm_90");
  EXPECT_THAT(old, Not(Contains("--no-cache")));
  EXPECT_THAT(recent, Contains("--no-cache"));
  EXPECT_EQ(recent, newest);
  EXPECT_THAT(old, Not(Contains("-lineinfo"))) << "four times as large, and longer to load";
}

TEST(Options, ThoseThatEscapeTheKeyAreRefused) {
  const Target target{ImageKind::kCubin, "sm_90", {}};
  for (const std::string_view bad : {"-I/usr/include", "--include-path=/x", "--use-pch=a", "--pch",
                                     "-arch=sm_80", "--gpu-architecture=sm_80", "-dlto"}) {
    const std::string_view list[] = {bad};
    const auto options = compile_options(target, 13, 0, list);
    ASSERT_FALSE(options) << bad;
    EXPECT_THAT(options.error().message, HasSubstr(std::string(bad)));
  }
  const std::string_view good[] = {"--fmad=false", "--ftz=true"};
  const auto options = compile_options(target, 13, 0, good);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->back(), "--ftz=true");
}

}  // namespace
}  // namespace hmmjit::compile
