// A failed kernel, after which a device is of no use to this process. Skipped, saying why, if there
// is no device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "driver/driver.hpp"
#include "gpu/stream_wait.hpp"

namespace hmmjit {
namespace {

TEST(GpuFailure, AFailedKernelEndsAllWaitsAtOnce) {
  constexpr std::string_view kTrap =
      ".version 6.3\n.target sm_75\n.address_size 64\n"
      ".visible .entry fail(.param .u64 delay) {\n"
      "  .reg .u64 %now, %end, %delay;\n  .reg .pred %more;\n"
      "  ld.param.u64 %delay, [delay];\n"
      "  mov.u64 %now, %globaltimer;\n  add.u64 %end, %now, %delay;\n"
      "wait:\n  mov.u64 %now, %globaltimer;\n  setp.lt.u64 %more, %now, %end;\n"
      "  @%more bra wait;\n  trap;\n}\n";
  const auto driver = driver::Driver::open();
  if (!driver->ready()) GTEST_SKIP() << "no device: " << driver->report().message;
  const auto device = driver->device(0).value();
  const auto kernel = driver::LoadedKernel::load(driver, kTrap, "fail").value();
  const auto failing = driver::Stream::create(device).value();
  const auto other = driver::Stream::create(device).value();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t delay = 200'000'000;  // ns
  ASSERT_TRUE(kernel->launch(failing, {}, &delay));
  ASSERT_TRUE(kernel->launch(other, {}, &delay));
  const auto wait = [&](const driver::Stream& stream) {
    const Status waited = gpu::wait_for(stream, *device, {.timeout = 10});
    ASSERT_FALSE(waited);
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    fmt::print("after {:.0f} ms: {}\n", passed.count(), waited.error().to_string());
    EXPECT_FALSE(device->abandoned());
  };
  const std::jthread meanwhile([&] { wait(other); });
  wait(failing);
}

}  // namespace
}  // namespace hmmjit
