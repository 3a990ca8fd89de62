// Acceptance test N, driver part: the states of a machine without a usable driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "driver/driver.hpp"

namespace hmmjit::driver {
namespace {

DriverReport report_with(const char* library) {
  setenv("HMMJIT_CUDA_LIBRARY", library, 1);
  const auto driver = Driver::open();
  unsetenv("HMMJIT_CUDA_LIBRARY");
  EXPECT_EQ(driver->device_count(), 0);
  const Status status = driver->require();
  EXPECT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNoDevice);
  EXPECT_FALSE(driver->traits(0));
  EXPECT_FALSE(driver->device(0));
  return driver->report();
}

TEST(DriverStates, AreDistinctAndHaveARemedyEach) {
#if HMMJIT_HAVE_CUDA_HEADERS
  const DriverReport absent = report_with("libcuda_that_does_not_exist.so.1");
  EXPECT_EQ(absent.state, DriverState::kNoDriver);
  const DriverReport old = report_with(FAKE_OLD_DRIVER);
  EXPECT_EQ(old.state, DriverState::kTooOld);
  EXPECT_THAT(old.message, testing::HasSubstr("11.4"));
  const DriverReport no_device = report_with(FAKE_NO_DEVICE_DRIVER);
  EXPECT_EQ(no_device.state, DriverState::kNoDevice);
  std::vector<DriverReport> all{absent, old, no_device};
  for (const char* stub : {"/usr/local/cuda/lib64/stubs/libcuda.so",
                           "/usr/local/cuda/targets/x86_64-linux/lib/stubs/libcuda.so"}) {
    if (!std::filesystem::exists(stub)) continue;
    all.push_back(report_with(stub));
    EXPECT_EQ(all.back().state, DriverState::kStub);
    break;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].message.empty());
    EXPECT_FALSE(all[i].remedy.empty());
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NE(all[i].state, all[j].state);
      EXPECT_NE(all[i].remedy, all[j].remedy);
    }
  }
#else
  EXPECT_EQ(report_with("libcuda.so.1").state, DriverState::kNotBuilt);
#endif
}

}  // namespace
}  // namespace hmmjit::driver
