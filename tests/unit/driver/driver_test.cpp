#include "driver/driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <thread>

#include "fake_driver/fake_driver.hpp"

namespace hmmjit::driver {
namespace {

using testing::HasSubstr;
using tests::FakeDriver;
using tests::FakeLaunch;

plan::DeviceTraits table(const char* name) { return *plan::find_device(name); }

TEST(Driver, ReadsTraitsOfEveryDevice) {
  plan::DeviceTraits unknown = table("B200");
  unknown.name = "NVIDIA B300";
  unknown.minor = 3;
  FakeDriver fake({table("H200"), table("T4"), unknown});
  const auto driver = Driver::open(fake.api());
  ASSERT_TRUE(driver->ready()) << driver->report().message;
  EXPECT_EQ(driver->device_count(), 3);
  EXPECT_EQ(driver->traits(2)->memory_bandwidth, unknown.memory_bandwidth) << "those before it";
  for (int i = 0; i < 2; ++i) {
    const auto traits = driver->traits(i);
    ASSERT_TRUE(traits);
    plan::DeviceTraits expected = table(i == 0 ? "H200" : "T4");
    expected.live = true;
    EXPECT_EQ(traits->memory_bandwidth, expected.memory_bandwidth)
        << "a driver that does not tell clocks gets the table's";
    EXPECT_EQ(*traits, expected);
  }
  EXPECT_EQ(fake.alive("context"), 0) << "traits need no context";
  const auto none = driver->traits(3);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNoDevice);
}

TEST(Driver, StatesFromInitialisation) {
  const auto state_of = [](auto set_up) {
    FakeDriver fake({table("H200")});
    set_up(fake);
    const auto driver = Driver::open(fake.api());
    EXPECT_EQ(driver->ready(), driver->report().state == DriverState::kReady);
    return driver->report();
  };
  EXPECT_EQ(state_of([](FakeDriver&) {}).state, DriverState::kReady);
  EXPECT_EQ(state_of([](FakeDriver& f) { f.init_code = code::kStubLibrary; }).state,
            DriverState::kStub);
  EXPECT_EQ(state_of([](FakeDriver& f) { f.init_code = code::kNoDevice; }).state,
            DriverState::kNoDevice);
  EXPECT_EQ(state_of([](FakeDriver& f) { f.version = 11080; }).state, DriverState::kTooOld);
  const auto mismatch = state_of([](FakeDriver& f) { f.init_code = code::kSystemDriverMismatch; });
  EXPECT_EQ(mismatch.state, DriverState::kFailed);
  EXPECT_THAT(mismatch.remedy, HasSubstr("reboot"));
  EXPECT_EQ(
      state_of([](FakeDriver& f) { f.fail_call("device_count", code::kNotInitialized); }).state,
      DriverState::kFailed);
  FakeDriver empty({});
  EXPECT_EQ(Driver::open(empty.api())->report().state, DriverState::kNoDevice);
}

TEST(Driver, RetainsOnePrimaryContextPerDevice) {
  FakeDriver fake({table("H200"), table("H200")});
  const auto driver = Driver::open(fake.api());
  std::vector<DevicePtr> devices(8);
  {
    std::vector<std::jthread> threads;
    for (DevicePtr& device : devices) threads.emplace_back([&] { device = *driver->device(0); });
  }
  const int retained = fake.calls("context_retain");  // by threads at the same time
  devices.push_back(*driver->device(0));
  EXPECT_EQ(fake.calls("context_retain"), retained);
  EXPECT_THAT(devices, testing::Each(devices.front()));
  EXPECT_NE(*driver->device(1), devices.front());
}

// The exit status then says that there is no GPU to use, not that hmmjit has a bug.
TEST(Driver, ADeviceThatDoesNotStartIsNone) {
  constexpr int kUnknown = 999;
  for (const int reason : {code::kDeviceUnavailable, code::kEccUncorrectable, kUnknown}) {
    for (const char* call : {"context_retain", "memory_info", "stream_create", "event_record"}) {
      FakeDriver fake({table("H200")});
      const auto driver = Driver::open(fake.api());
      fake.fail_call(call, reason);
      const auto started = [&]() -> Status {
        HMMJIT_ASSIGN(const DevicePtr device, driver->device(0));
        HMMJIT_TRY(device->memory());
        HMMJIT_TRY(Event::now(device));
        return {};
      }();
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error().code, ErrorCode::kNoDevice) << call;
      EXPECT_EQ(started.error().remedy.empty(), reason == kUnknown);
    }
  }
  FakeDriver fake({table("H200")});
  const auto driver = Driver::open(fake.api());
  fake.fail_call("context_retain", code::kOutOfMemory);
  EXPECT_EQ(driver->device(0).error().code, ErrorCode::kResources);
}

/// All device operations of a search, in order; stops at the first error.
Status exercise(const std::shared_ptr<Driver>& driver) {
  HMMJIT_ASSIGN(const DevicePtr device, driver->device(0));
  HMMJIT_ASSIGN(const auto memory, device->memory());
  (void)memory;
  HMMJIT_ASSIGN(Stream stream, Stream::create(device));
  HMMJIT_ASSIGN(Event start, Event::create(device, true));
  HMMJIT_ASSIGN(Event end, Event::create(device, true));
  HMMJIT_ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(device, 4096));
  HMMJIT_ASSIGN(PinnedBuffer staging, PinnedBuffer::create(device, 4096));
  HMMJIT_ASSIGN(const auto kernel, LoadedKernel::load(driver, "cubin", "ssv"));
  HMMJIT_ASSIGN(const auto resources, kernel->prepare(*device, 256, 100'000));
  (void)resources;
  HMMJIT_TRY(start.record(stream));
  HMMJIT_TRY(buffer.fill(stream, 0, 4096));
  HMMJIT_TRY(buffer.upload(stream, staging.bytes().data(), 4096));
  struct {
    DevicePointer data;
  } parameters{buffer.address()};
  HMMJIT_TRY(kernel->launch(
      stream, {.blocks = 4, .block_threads = 256, .dynamic_shared_bytes = 100'000}, &parameters));
  HMMJIT_TRY(buffer.download(stream, staging.bytes().data(), 4096));
  HMMJIT_TRY(end.record(stream));
  HMMJIT_TRY(end.wait_in(stream));
  HMMJIT_TRY(end.synchronize());
  HMMJIT_ASSIGN(const bool event_finished, end.finished());
  HMMJIT_ASSIGN(const bool stream_finished, stream.finished());
  EXPECT_TRUE(event_finished && stream_finished);
  int result = code::kNotReady;
  HMMJIT_TRY(stream.then(
      [](StreamHandle, int given, void* argument) { *static_cast<int*>(argument) = given; },
      &result));
  HMMJIT_TRY(driver->check(result, "a callback of cuStreamAddCallback"));
  HMMJIT_ASSIGN(const float ms, Event::milliseconds(start, end));
  EXPECT_GT(ms, 0);
  HMMJIT_TRY(stream.synchronize());
  return device->synchronize();
}

TEST(Driver, PinnedMemoryIsWhollyThereAndInLargePages) {
  FakeDriver fake({table("H200")});
  const auto driver = Driver::open(fake.api());
  const auto device = driver->device(0);
  ASSERT_TRUE(device);
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, kLarge, 2 * kLarge + 1}) {
    auto buffer = PinnedBuffer::create(*device, bytes);
    ASSERT_TRUE(buffer) << bytes;
    EXPECT_EQ(fake.alive("registered"), 1);
    const std::span<std::byte> data = buffer->bytes();
    ASSERT_EQ(data.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.data()) % (bytes < kLarge ? 4096 : kLarge), 0u);
    EXPECT_TRUE(std::ranges::all_of(data, [](std::byte b) { return b == std::byte{}; }));
    std::ranges::fill(data, std::byte{7});
    PinnedBuffer moved = *std::move(buffer);
    EXPECT_EQ(moved.bytes().data(), data.data());
    moved = {};
    EXPECT_EQ(fake.alive("registered"), 0) << bytes;
  }
  const auto none = PinnedBuffer::create(*device, 0);
  EXPECT_TRUE(none && none->bytes().empty());
  const auto refused = PinnedBuffer::create(*device, std::size_t{1} << 60);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResources);
}

void expect_nothing_alive(const FakeDriver& fake, const std::string& when) {
  for (const char* kind : {"memory", "registered", "stream", "event", "library"}) {
    EXPECT_EQ(fake.alive(kind), 0) << kind << " leaked after " << when;
  }
}

// Lets each call of the sequence fail: always an error that names the call, never a leak.
TEST(Driver, AnyFailingCallIsReportedAndLeaksNothing) {
  std::vector<std::string> members;
  {
    FakeDriver fake({table("H200")});
    const auto driver = Driver::open(fake.api());
    ASSERT_TRUE(exercise(driver));
    expect_nothing_alive(fake, "success");
    std::istringstream names(
        "device_get device_name device_memory context_retain context_set_current "
        "memory_info stream_create event_create memory_allocate host_register "
        "library_load library_kernel kernel_attribute kernel_set_attribute "
        "occupancy event_record fill copy_to_device launch copy_to_host "
        "stream_wait_event event_synchronize event_query stream_query "
        "stream_add_callback stream_end event_elapsed stream_synchronize "
        "context_synchronize");
    for (std::string member; names >> member;) {
      ASSERT_GT(fake.calls(member), 0) << member << " is never called";
      members.push_back(member);
    }
  }
  for (const std::string& member : members) {
    for (const int nth : {1, 2, 3}) {
      FakeDriver fake({table("H200")});
      const auto driver = Driver::open(fake.api());
      const int before = fake.calls(member);
      fake.fail_call(member, code::kLaunchFailed, nth);
      const Status status = exercise(driver);
      if (fake.calls(member) - before < nth) {
        EXPECT_TRUE(status) << member;
        continue;
      }
      // A destructor cannot report a failing cuCtxSetCurrent.
      if (member != "context_set_current") {
        ASSERT_FALSE(status) << member << " " << nth;
        EXPECT_THAT(status.error().message, HasSubstr("FAKE_ERROR_719")) << member;
        EXPECT_THAT(status.error().message, HasSubstr("cu")) << member;
        expect_nothing_alive(fake, member);
      }
    }
  }
}

TEST(Driver, WhatIsNotReadyYetIsNoError) {
  FakeDriver fake({table("H200")});
  const auto driver = Driver::open(fake.api());
  const auto device = *driver->device(0);
  const auto stream = *Stream::create(device);
  const auto event = *Event::create(device);
  const auto check = [&](const char* member, const auto& finished) {
    fake.fail_call(member, code::kNotReady);
    const Result<bool> waiting = finished();
    ASSERT_TRUE(waiting) << waiting.error().to_string();
    EXPECT_FALSE(*waiting) << member;
    fake.fail_call(member, code::kLaunchFailed);
    EXPECT_FALSE(finished()) << member;
    const Result<bool> done = finished();
    ASSERT_TRUE(done);
    EXPECT_TRUE(*done) << member;
  };
  check("event_query", [&] { return event.finished(); });
  check("stream_query", [&] { return stream.finished(); });
}

TEST(Driver, CopiesStayInsideTheBuffer) {
  FakeDriver fake({table("T4")});
  const auto driver = Driver::open(fake.api());
  const auto device = *driver->device(0);
  const auto stream = *Stream::create(device);
  const auto buffer = *DeviceBuffer::create(device, 100);
  std::vector<unsigned char> in(100), out(100, 0);
  std::iota(in.begin(), in.end(), static_cast<unsigned char>(0));
  ASSERT_TRUE(buffer.upload(stream, in.data(), 100));
  ASSERT_TRUE(buffer.fill(stream, 7, 10, 50));
  ASSERT_TRUE(buffer.download(stream, out.data(), 100));
  std::fill(in.begin() + 50, in.begin() + 60, static_cast<unsigned char>(7));
  EXPECT_EQ(in, out);
  for (const auto& status :
       {buffer.upload(stream, in.data(), 101), buffer.download(stream, out.data(), 51, 50),
        buffer.fill(stream, 0, 1, 101), buffer.fill(stream, 0, static_cast<std::size_t>(-1), 1)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  }
  EXPECT_TRUE(buffer.upload(stream, nullptr, 0, 100));
  const auto empty = DeviceBuffer::create(device, 0);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->address(), 0u);
}

// Acceptance point 10: code that the driver refuses to load has its own error.
TEST(Driver, RefusedImagesAreCompileErrors) {
  for (const int refusal : {code::kInvalidImage, code::kNoBinaryForGpu, code::kInvalidPtx,
                            code::kUnsupportedPtxVersion}) {
    FakeDriver fake({table("T4")});
    const auto driver = Driver::open(fake.api());
    fake.fail_call("library_load", refusal);
    const auto kernel = LoadedKernel::load(driver, "bytes", "ssv");
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, ErrorCode::kCompile);
    EXPECT_FALSE(kernel.error().remedy.empty());
  }
  FakeDriver fake({table("T4")});
  fake.kernels = {"other"};
  const auto driver = Driver::open(fake.api());
  const auto kernel = LoadedKernel::load(driver, "bytes", "ssv");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kCompile);
  EXPECT_EQ(fake.alive("library"), 0);
}

TEST(Driver, PtxNewerThanTheDriverNamesBothVersions) {
  FakeDriver fake({table("T4")});
  fake.version = 12040;
  const auto driver = Driver::open(fake.api());
  fake.fail_call("library_load", code::kUnsupportedPtxVersion);
  const auto kernel = LoadedKernel::load(
      driver, "//\n// made by a compiler\n//\n.version 8.8\n.target sm_75\n", "ssv");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kCompile);
  EXPECT_THAT(kernel.error().message, HasSubstr("PTX 8.8"));
  EXPECT_THAT(kernel.error().message, HasSubstr("CUDA 12.4"));
  EXPECT_THAT(kernel.error().remedy, HasSubstr("update the driver"));
}

TEST(Driver, OneLoadServesEveryDevice) {
  FakeDriver fake({table("H200"), table("H200"), table("H200")});
  const auto driver = Driver::open(fake.api());
  const auto kernel = *LoadedKernel::load(driver, "bytes", "ssv");
  std::set<int> seen;
  fake.on_launch = [&](const FakeLaunch& launch) {
    seen.insert(launch.device);
    return 0;
  };
  for (int i = 0; i < 3; ++i) {
    const auto device = *driver->device(i);
    const auto stream = *Stream::create(device);
    ASSERT_TRUE(kernel->prepare(*device, 128, 64 * 1024));
    int parameters = 0;
    ASSERT_TRUE(kernel->launch(
        stream, {.blocks = 1, .block_threads = 128, .dynamic_shared_bytes = 64 * 1024},
        &parameters));
  }
  EXPECT_EQ(fake.calls("library_load"), 1);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Driver, KernelThatFitsNoSmIsRefused) {
  FakeDriver fake({table("H200")});
  fake.blocks_per_sm = 0;
  const auto driver = Driver::open(fake.api());
  const auto kernel = *LoadedKernel::load(driver, "bytes", "ssv");
  const auto resources = kernel->prepare(**driver->device(0), 1024, 0);
  ASSERT_FALSE(resources);
  EXPECT_EQ(resources.error().code, ErrorCode::kCompile);
}

// No driver calls at exit, even if a static of the host program outlives the driver.
FakeDriver* g_fake_at_exit = nullptr;
struct HoldsDeviceObjects {
  DeviceBuffer buffer;
  Stream stream;
  int calls_before = 0;
  ~HoldsDeviceObjects() {
    if (g_fake_at_exit == nullptr) return;
    const int before = g_fake_at_exit->total_calls();
    buffer = DeviceBuffer();
    stream = Stream();
    if (g_fake_at_exit->total_calls() != before) std::_Exit(3);
    std::_Exit(42);
  }
};

TEST(DriverDeathTest, NoCallsWhileTheProcessExits) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static HoldsDeviceObjects holder;  // constructed before the driver's exit handler
        // Never destroyed, to observe late calls.
        g_fake_at_exit = new FakeDriver({table("H200")});
        const auto& driver = *new std::shared_ptr<Driver>(Driver::open(g_fake_at_exit->api()));
        const auto device = *driver->device(0);
        holder.buffer = *DeviceBuffer::create(device, 100);
        holder.stream = *Stream::create(device);
        std::exit(0);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hmmjit::driver
