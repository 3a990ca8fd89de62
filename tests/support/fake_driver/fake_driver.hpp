// A driver for tests: the whole function table over host memory, with failures on demand.
//
// Device memory is host memory; copies and fills happen at once; a launch calls a function the
// test registers for the kernel's name. Every call is counted, and any call can be made to return
// any code. One FakeDriver at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "driver/driver_api.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::tests {

struct FakeLaunch {
  std::string kernel;
  int device = 0;
  unsigned blocks = 0, block_threads = 0, shared_bytes = 0;
  const void* parameters = nullptr;  ///< valid during the call
  unsigned blocks_y = 1;
  std::string image = {};  ///< of the library the kernel came from, up to its first zero byte
};

class FakeDriver {
 public:
  explicit FakeDriver(std::vector<plan::DeviceTraits> devices);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  /// The table; valid while this object lives.
  driver::DriverApi api() const;

  /// From now on the `nth` call (1: the next) of a function, named as the table's member, returns
  /// `code`; 0 takes it back. `always`: every call from the nth on. "stream_end": the result with
  /// which a stream calls back.
  void fail_call(const std::string& member, int code, int nth = 1, bool always = false);
  /// From the `nth` call of any function on, all calls return `code`, as after the loss of a
  /// device.
  void fail_from(int nth, int code);

  int version = 13000;
  int init_code = 0;
  std::size_t memory_limit = std::size_t{1} << 30;  ///< per device
  int registers = 32, local_bytes = 0, static_shared = 0, max_threads = 1024;
  std::map<std::string, int> local_bytes_of;  ///< by kernel, where it differs from local_bytes
  int blocks_per_sm = 4;
  /// Names a library "contains"; empty: any.
  std::set<std::string> kernels;
  std::function<int(const FakeLaunch&)> on_launch;
  /// Called before each call of the table with the member's name and the thread's device (-1:
  /// none), from the calling thread, which it may hold up; a code other than 0 is returned instead
  /// of doing the call.
  std::function<int(const char* member, int device)> on_call;
  /// Called with what a stream would call at the end of its work, instead of that call.
  std::function<void(std::function<void()> end)> on_stream_end;
  /// Called with each image to be loaded: whether the driver refuses it.
  std::function<bool(const std::string& image)> refuses;
  float elapsed_milliseconds = 1;  ///< between any two events

  /// True while this thread is in a call of the table.
  static bool inside();

  /// "copy_behind_kernel": the calls of "copy_to_host" with a kernel before them in their stream,
  /// which would hold up the copies of all streams.
  int calls(const std::string& member) const;
  int total_calls() const;
  /// The device on whose memory an address lies; -1: none.
  int device_of(const void* address) const;
  /// Things made and not yet released: "memory", "registered", "stream", "event",
  /// "library", "context".
  int alive(const std::string& kind) const;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit::tests
