// Devices, memory, streams and kernels: thin RAII owners over the driver's function table.
//
// One Driver per process suffices; it must outlive its devices. Uses only primary contexts,
// retained on a device's first use and never released. Loads kernels independently of contexts: one
// image serves every device of its architecture. Destructors free what the object owns, except
// while the process exits (the driver may be gone, and the system frees everything) and on an
// abandoned device, where driver calls may never return.
// Threads: Driver, Device and LoadedKernel are immutable and may be shared. A Stream, Event or
// buffer belongs to one thread at a time. Every call makes its device's context current.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "driver/cuda_library.hpp"
#include "driver/driver_api.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::driver {

class Device;

class Driver : public std::enable_shared_from_this<Driver> {
 public:
  /// Opens and initialises this machine's libcuda. Never fails; see report().
  static std::shared_ptr<Driver> open();
  /// Uses and initialises the given table, for tests.
  static std::shared_ptr<Driver> open(const DriverApi& api);

  const DriverReport& report() const { return report_; }
  bool ready() const { return report_.state == DriverState::kReady; }
  /// kNoDevice with the report's message and remedy unless the driver is ready.
  Status require() const;

  int device_count() const { return device_count_; }
  /// Traits of a device, without creating a context; kNoDevice if the ordinal does not exist.
  Result<plan::DeviceTraits> traits(int ordinal) const;
  /// The device with its primary context (120 to 190 ms the first time). Fails with kNoDevice if
  /// the driver refuses it, like Device::memory() and Event::now(), and with kResources without
  /// memory.
  Result<std::shared_ptr<Device>> device(int ordinal);

  const DriverApi& api() const { return api_; }
  /// Converts a driver result to a Status whose error names the call and quotes the driver. Codes:
  /// kResources if out of memory, kCompile for a refused image, kNoDevice for no device, otherwise
  /// kInternal.
  Status check(int result, std::string_view call) const;

 private:
  friend class Device;
  friend class LoadedKernel;
  Driver() = default;
  void initialise();

  std::atomic<bool> device_abandoned_{false};
  DriverReport report_;
  DriverApi api_{};
  int device_count_ = 0;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Device>> devices_;
};

/// A device and its primary context.
class Device {
 public:
  int ordinal() const { return ordinal_; }
  int handle() const { return handle_; }
  const plan::DeviceTraits& traits() const { return traits_; }
  const DriverApi& api() const { return driver_->api(); }
  const Driver& driver() const { return *driver_; }
  /// Makes the context current in the calling thread.
  Status use() const;
  /// Calls a driver function in the context; an error names it.
  template <typename... Parameters>
  Status call(std::string_view name, int (*DriverApi::*function)(Parameters...),
              std::type_identity_t<Parameters>... arguments) const {
    HMMJIT_TRY(use());
    return driver_->check((api().*function)(arguments...), name);
  }
  /// Waits for all of the device's work; reports errors of earlier launches.
  Status synchronize() const;
  struct Memory {
    std::uint64_t free = 0, total = 0;
  };
  Result<Memory> memory() const;

  /// For a device on which a kernel does not end: freeing would wait for the kernel, so nothing of
  /// this device is freed from now on. End the program with end_process_beside_abandoned().
  /// Thread-safe; irreversible.
  void abandon();
  bool abandoned() const { return abandoned_.load(std::memory_order_relaxed); }

 private:
  friend class Driver;
  Driver* driver_ = nullptr;  // the Driver that owns this device
  int ordinal_ = 0, handle_ = 0;
  ContextHandle context_ = nullptr;
  plan::DeviceTraits traits_;
  std::atomic<bool> abandoned_{false};
};
using DevicePtr = std::shared_ptr<Device>;

/// True once the process has begun to exit; destructors then do not call the driver.
bool process_is_exiting();

/// A value that belongs to a device, and the function that releases it in the device's context
/// (null: none). Ignores errors of the release: a broken context fails again at the next checked
/// call.
template <typename T>
class Owned {
 public:
  using Release = void (*)(const DriverApi&, const T&);
  Owned() = default;
  Owned(DevicePtr device, const T& value, Release release)
      : device_(std::move(device)), value_(value), release_(release) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(value_, other.value_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (release_ == nullptr || process_is_exiting() || device_->abandoned()) return;
    if (device_->use()) release_(device_->api(), value_);
  }
  const T& value() const { return value_; }
  const DevicePtr& device() const { return device_; }

 private:
  DevicePtr device_;
  T value_{};
  Release release_ = nullptr;
};

/// Ordered queue of copies, fills and launches on one device.
class Stream {
 public:
  /// `urgent`: the device schedules this stream's kernels before those of other streams.
  static Result<Stream> create(DevicePtr device, bool urgent = false);
  /// Wraps a stream of the same primary context, which must outlive the work queued on it; null
  /// means the legacy default stream. The destructor does not destroy it.
  static Stream borrow(DevicePtr device, StreamHandle handle);
  /// Waits for the queue; returns the first error of queued work.
  Status synchronize() const;
  /// True if the queue is empty.
  Result<bool> finished() const;
  /// Queues a call of `callback`, also made after failed work, which its argument `result` shows.
  /// The callback must not call the driver.
  Status then(StreamCallback callback, void* argument) const;
  StreamHandle handle() const { return handle_.value(); }
  const DevicePtr& device() const { return handle_.device(); }

 private:
  Owned<StreamHandle> handle_;
};

class Event {
 public:
  static Result<Event> create(DevicePtr device, bool timing = false);
  /// A finished timing event, as an origin for others.
  static Result<Event> now(const DevicePtr& device);
  Status record(const Stream& stream);
  Status synchronize() const;
  Result<bool> finished() const;
  /// Makes later work of `stream` wait for this event.
  Status wait_in(const Stream& stream) const;
  /// Milliseconds between two finished timing events.
  static Result<float> milliseconds(const Event& start, const Event& end);
  EventHandle handle() const { return handle_.value(); }

 private:
  Owned<EventHandle> handle_;
};

/// Device memory.
class DeviceBuffer {
 public:
  /// Fails with kResources if the device lacks the memory; 0 bytes give an empty buffer.
  static Result<DeviceBuffer> create(DevicePtr device, std::size_t bytes);
  DevicePointer address() const { return range_.value().address; }
  std::size_t size() const { return range_.value().size; }
  /// Queued. `from` must stay valid until the copy is done, unless it is pageable memory. Fails
  /// with kInternal if the range exceeds the buffer.
  Status upload(const Stream& stream, const void* from, std::size_t bytes,
                std::size_t offset = 0) const;
  Status download(const Stream& stream, void* to, std::size_t bytes, std::size_t offset = 0) const;
  Status fill(const Stream& stream, unsigned char value, std::size_t bytes,
              std::size_t offset = 0) const;

 private:
  struct Range {
    DevicePointer address = 0;
    std::size_t size = 0;
  };
  // The address at `offset`; fails unless `bytes` bytes from there lie inside.
  Result<DevicePointer> at(std::size_t offset, std::size_t bytes, const char* what) const;

  Owned<Range> range_;
};

/// Page-locked staging memory. Makes the pages present before the driver locks them, which takes
/// 0.3 to 0.8 ms for 4 MB on an H200 host; cuMemHostAlloc takes 2 ms, during which no other thread
/// can load a kernel or allocate.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> create(DevicePtr device, std::size_t bytes);
  std::span<std::byte> bytes() const { return bytes_.value(); }

 private:
  Owned<std::span<std::byte>> bytes_;
};

/// Page-locked memory that grows. Keeps outgrown buffers: to free one, the driver waits until the
/// device is idle (a third of a second during the domain stage) and blocks all other threads.
class GrowingPinnedBuffer {
 public:
  /// Provides at least `bytes`, rounded up to a power of two, and at least `least`. Growing loses
  /// the contents; on failure the buffer is unchanged.
  Status reserve(const DevicePtr& device, std::size_t bytes, std::size_t least);
  std::span<std::byte> bytes() const {
    return buffers_.empty() ? std::span<std::byte>() : buffers_.back().bytes();
  }

 private:
  std::vector<PinnedBuffer> buffers_;  // the last one is in use
};

/// A loaded kernel's resources on one device, as reported by the driver.
struct LoadedResources {
  int registers = 0, local_bytes = 0, static_shared_bytes = 0, max_threads = 0;
  int blocks_per_sm = 0;  ///< for the given block size and shared memory
};

struct LaunchGrid {
  unsigned blocks = 1;
  unsigned block_threads = 32;
  unsigned dynamic_shared_bytes = 0;
  unsigned blocks_y = 1, blocks_z = 1;
  unsigned threads_y = 1, threads_z = 1;  ///< block dimensions beyond block_threads along x
};

/// An image, loaded for all devices.
class LoadedKernel {
 public:
  /// Loads a cubin, or PTX, which the driver compiles now. Fails with kCompile if the driver
  /// refuses the image: then discard its cache entry and compile it once more.
  static Result<std::shared_ptr<LoadedKernel>> load(std::shared_ptr<Driver> driver,
                                                    std::string_view image,
                                                    const std::string& entry_name);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  /// Prepares a device: allows the dynamic shared memory and queries the occupancy, which the
  /// caller compares with the plan's. Fails with kCompile if no block fits on a multiprocessor.
  Result<LoadedResources> prepare(const Device& device, int block_threads,
                                  std::int64_t dynamic_shared_bytes) const;
  /// Queues one launch. Copies `parameters`, the kernel's argument (a struct), before it returns.
  Status launch(const Stream& stream, const LaunchGrid& grid, const void* parameters) const;
  KernelHandle handle() const { return kernel_; }

 private:
  LoadedKernel() = default;
  std::shared_ptr<Driver> driver_;
  LibraryHandle library_ = nullptr;
  KernelHandle kernel_ = nullptr;
  std::string entry_name_;
};

/// Makes the process end as if a device were abandoned: nothing waits for the devices.
void leave_devices_to_the_system();
/// If any device was abandoned, flushes the standard streams and ends the process with `status`
/// without exit handlers, because those of the driver may wait for the kernel forever. Call it once
/// all output is written.
void end_process_beside_abandoned(int status);

}  // namespace hmmjit::driver
