// Whatever the driver does wrong, at whichever call: the output is complete and the same, or there
// is none and an error says why.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host_kernels.hpp"
#include "search_fixture.hpp"

namespace hmmjit::tests {
namespace {

using driver::code::kInvalidImage;
using driver::code::kLaunchFailed;
using driver::code::kOutOfMemory;

std::vector<std::string> members() {
  std::istringstream names(
      "init driver_version device_count device_get device_name device_attribute device_memory "
      "context_retain context_set_current library_load library_kernel kernel_attribute "
      "kernel_set_attribute occupancy launch memory_info memory_allocate memory_free host_register "
      "host_unregister copy_to_device copy_to_host fill stream_create stream_destroy "
      "stream_synchronize stream_query stream_add_callback stream_end event_create event_destroy "
      "event_record event_synchronize event_elapsed");
  return {std::istream_iterator<std::string>(names), {}};
}

const SearchData& data() {
  static const SearchData data = make_search_data(23, 2, 60, 40);
  return data;
}
const std::string& expected() {
  static const std::string text = [] {
    return run_search(data(), nullptr, small_blocks(2)).text;
  }();
  return text;
}

class GpuFaults : public testing::TestWithParam<std::string> {};

TEST_P(GpuFaults, OutputIsCompleteOrThereIsAnError) {
  const std::string member = GetParam();
  for (const int code : {kOutOfMemory, kLaunchFailed, kInvalidImage}) {
    for (const int nth : {1, 2, 5, 14}) {
      for (const bool always : {false, true}) {
        FakeDriver driver({*plan::find_device("H200"), *plan::find_device("H200")});
        driver.on_launch = run_on_host;
        driver.fail_call(member, code, nth, always);
        gpu::Settings settings = fake_settings(driver, nth % 2 + 1);
        settings.launch_timeout = 5;
        settings.wait_for_device = nth % 2 == 1;
        gpu::GpuFilters gpu(std::move(settings));
        if (nth > 1) wait_until_started(gpu);
        const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2));
        EXPECT_EQ(outcome.error, "") << member << " " << code << " " << nth;
        EXPECT_EQ(outcome.text, expected()) << member << " " << code << " " << nth;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryCall, GpuFaults, testing::ValuesIn(members()),
                         [](const auto& instance) { return instance.param; });

TEST(GpuFaultsOnDemand, AFailingStartEndsTheRunWithoutOutput) {
  for (const char* member : {"init", "device_count", "context_retain", "memory_info"}) {
    FakeDriver driver({*plan::find_device("H200")});
    driver.on_launch = run_on_host;
    driver.fail_call(member, kLaunchFailed, 1, true);
    gpu::Settings settings = fake_settings(driver);
    settings.demanded = true;
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2));
    EXPECT_NE(outcome.error, "") << member;
    EXPECT_EQ(outcome.text, "") << member;
  }
}

TEST(GpuFaultsOnDemand, AKernelThatNeverEndsIsGivenUp) {
  // A real driver would wait in these for the kernel that does not end.
  constexpr const char* kWaiting[] = {"memory_free",   "host_unregister",    "stream_destroy",
                                      "event_destroy", "stream_synchronize", "library_unload"};
  FakeDriver driver({*plan::find_device("H200")});
  driver.on_launch = run_on_host;
  std::mutex mutex;
  std::vector<std::function<void()>> ends;  // which come too late
  driver.on_stream_end = [&](std::function<void()> end) {
    const std::lock_guard lock(mutex);
    ends.push_back(std::move(end));
  };
  gpu::Settings settings = fake_settings(driver);
  settings.launch_timeout = 0.05;
  settings.lanes = 1;
  int warnings = 0;
  std::map<std::string, int> before;
  settings.on_warning = [&](const std::string&) {
    ++warnings;
    for (const char* member : kWaiting) before[member] = driver.calls(member);
  };
  {
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, expected());
    EXPECT_EQ(gpu.statistics().state, "failed");
  }
  EXPECT_EQ(warnings, 1);
  EXPECT_FALSE(ends.empty());
  for (const auto& end : ends) end();
  for (const char* member : kWaiting) EXPECT_EQ(driver.calls(member), before[member]) << member;
}

// A device is lost at every call of the run, up to a stride, and stays lost; another goes on.
TEST(GpuFaultsOnDemand, ADeviceLostAtAnyCall) {
  for (const int devices : {1, 2}) {
    std::uint64_t done = 0;
    // Returns the number of the device's calls.
    const auto search = [&](int lost_at, int code, bool domains) {
      FakeDriver driver({*plan::find_device("H200"), *plan::find_device("H200")});
      driver.on_launch = run_on_host;
      std::atomic<int> calls{0};
      driver.on_call = [&](const char*, int device) {
        return device == devices - 1 && ++calls >= lost_at ? code : driver::code::kSuccess;
      };
      // In lockstep, as they run here, they take most of the time.
      std::set<std::string> missing;
      if (!domains) missing.insert("parser_four_lane");
      gpu::GpuFilters gpu(fake_settings(driver, devices, without_kernels(missing)));
      wait_until_started(gpu);  // else the CPU may be done before
      const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2));
      EXPECT_EQ(outcome.error, "") << "from call " << lost_at;
      EXPECT_EQ(outcome.text, expected()) << "from call " << lost_at;
      done += gpu.statistics().blocks_done;
      return calls.load();
    };
    const int calls = search(std::numeric_limits<int>::max(), kLaunchFailed, true);
    ASSERT_GT(calls, 60);
    constexpr int kTrials = 50;
    done = 0;
    for (int trial = 0; trial < kTrials; ++trial)
      search(1 + calls * trial / kTrials,
             trial % 2 == 0 ? kLaunchFailed : driver::code::kNotInitialized, trial % 25 == 24);
    EXPECT_GT(done, 0u);
  }
}

TEST(GpuFaultsOnDemand, ALaunchOfAnyStageFails) {
  for (const std::string kernel :
       {"ssv", "msv", "bias", "viterbi_wavefront", "viterbi_lane_scan", "forward", "gate"}) {
    for (const int code : {kOutOfMemory, kLaunchFailed}) {
      for (const int nth : {1, 2}) {
        FakeDriver driver({*plan::find_device("H200")});
        int launches = 0;
        std::mutex mutex;
        driver.on_launch = [&](const FakeLaunch& launch) {
          {
            const std::lock_guard lock(mutex);
            if (launch.kernel.starts_with(kernel) && ++launches >= nth) return code;
          }
          return run_on_host(launch);
        };
        gpu::GpuFilters gpu(fake_settings(driver));
        wait_until_started(gpu);
        const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2));
        EXPECT_EQ(outcome.error, "") << kernel << " " << code;
        EXPECT_EQ(outcome.text, expected()) << kernel << " " << code;
        EXPECT_GE(launches, nth) << kernel;
      }
    }
  }
}

TEST(GpuFaultsOnDemand, TheFirstDeviceThatWorksDecidesTheArchitecture) {
  FakeDriver driver({*plan::find_device("T4"), *plan::find_device("H200")});
  driver.on_launch = run_on_host;
  driver.on_call = [](const char* member, int device) {
    const bool refused = device == 0 && std::string_view(member) == "memory_info";
    return refused ? driver::code::kDeviceUnavailable : driver::code::kSuccess;
  };
  gpu::GpuFilters gpu(fake_settings(driver, 2));
  wait_until_started(gpu);
  EXPECT_EQ(run_search(data(), &gpu, small_blocks(2)).text, expected());
  EXPECT_EQ(gpu.statistics().devices, std::vector<std::string>{"H200"});
  EXPECT_GT(gpu.statistics().blocks_done, 0u);
}

}  // namespace
}  // namespace hmmjit::tests
