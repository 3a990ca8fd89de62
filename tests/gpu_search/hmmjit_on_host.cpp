// The program with the driver of tests/support: its one device is the host (host_kernels.hpp).
// While the file $TEST_LOST_DEVICE is there, every call of the driver fails, as after the loss of a
// device. While $TEST_WRONG_DEVICE is there, scores are wrong.
#include <unistd.h>

#include <cstdlib>

#include "driver/cuda_library.hpp"
#include "host_kernels.hpp"

namespace hmmjit::driver {
namespace {

bool is_there(const char* file) { return file != nullptr && ::access(file, F_OK) == 0; }

}  // namespace

// The linker (--wrap) takes this for open_cuda_library().
CudaLibrary open_host() asm("__wrap__ZN6hmmjit6driver17open_cuda_libraryEv");
CudaLibrary open_host() {
  static tests::FakeDriver* const fake = [] {
    auto* const driver = new tests::FakeDriver({*plan::find_device("H200")});
    driver->on_launch = [file = std::getenv("TEST_WRONG_DEVICE")](const tests::FakeLaunch& launch) {
      return is_there(file) ? tests::run_on_host_wrongly(launch) : tests::run_on_host(launch);
    };
    driver->on_call = [file = std::getenv("TEST_LOST_DEVICE")](const char*, int) {
      return is_there(file) ? code::kLaunchFailed : code::kSuccess;
    };
    return driver;
  }();
  CudaLibrary out;
  out.report.state = DriverState::kReady;
  out.report.version = fake->version;
  out.report.path = "the host";
  out.api = fake->api();
  return out;
}

}  // namespace hmmjit::driver
