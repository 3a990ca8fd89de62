// Devices, memory, streams, kernels: thin owners over the driver's table.
//
// One Driver per process is enough; it must outlive the devices it gave. Primary contexts only,
// retained on first use of a device and never released; kernels are loaded independently of
// contexts, so one loaded image serves every device of its architecture. Objects free what they own
// when destroyed, except while the process exits: then the driver may already be gone, and the
// operating system frees everything. Nor do they touch an abandoned device, whose driver calls may
// never return.
//
// Threads: Driver, Device and LoadedKernel are immutable and shareable. A Stream, Event or buffer
// belongs to one thread at a time. Every call makes its device's context current by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "driver/cuda_library.hpp"
#include "driver/driver_api.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::driver {

class Device;

class Driver : public std::enable_shared_from_this<Driver> {
 public:
  /// libcuda of this machine, initialised. Never fails: see report().
  static std::shared_ptr<Driver> open();
  /// A given table (tests); initialised as the real one.
  static std::shared_ptr<Driver> open(const DriverApi& api);

  const DriverReport& report() const { return report_; }
  bool ready() const { return report_.state == DriverState::kReady; }
  /// kNoDevice with the report's message and remedy unless ready.
  Status require() const;

  int device_count() const { return device_count_; }
  /// Traits of a device without a context; kNoDevice for an ordinal that does not exist.
  Result<plan::DeviceTraits> traits(int ordinal) const;
  /// The device with its primary context (120 to 190 ms the first time).
  Result<std::shared_ptr<Device>> device(int ordinal);

  const DriverApi& api() const { return api_; }
  /// Status of a driver result: success, or an Error that names the call and the driver's text.
  /// Codes: out of memory kResources; an image it refuses kCompile; no device kNoDevice; else
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
  /// Waits for everything; reports errors of earlier launches.
  Status synchronize() const;
  struct Memory {
    std::uint64_t free = 0, total = 0;
  };
  Result<Memory> memory() const;

  /// A kernel on this device does not end. Freeing waits for it in the driver, so from now on
  /// nothing of this device is freed any more, and a program should end with
  /// end_process_beside_abandoned(). Thread-safe; for good.
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

/// Ordered queue of copies, fills and launches of one device.
class Stream {
 public:
  /// `urgent`: where it and others have work for the same multiprocessors, its kernels begin first.
  static Result<Stream> create(DevicePtr device, bool urgent = false);
  /// A stream of another owner, of this device's primary context, which outlives what is queued on
  /// it; null: the legacy default stream. It is not destroyed with this object.
  static Stream borrow(DevicePtr device, StreamHandle handle);
  Stream() = default;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();
  /// Waits; returns the first error of what was queued.
  Status synchronize() const;
  /// True when everything queued is done.
  Result<bool> finished() const;
  StreamHandle handle() const { return handle_; }
  const DevicePtr& device() const { return device_; }

 private:
  DevicePtr device_;
  StreamHandle handle_ = nullptr;
  bool borrowed_ = false;
};

class Event {
 public:
  static Result<Event> create(DevicePtr device, bool timing = false);
  Event() = default;
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  Status record(const Stream& stream);
  Status synchronize() const;
  Result<bool> finished() const;
  /// Later work of `stream` waits for this event.
  Status wait_in(const Stream& stream) const;
  /// Milliseconds between two recorded, finished timing events.
  static Result<float> milliseconds(const Event& start, const Event& end);
  EventHandle handle() const { return handle_; }

 private:
  DevicePtr device_;
  EventHandle handle_ = nullptr;
};

/// Device memory.
class DeviceBuffer {
 public:
  /// Fails with kResources when the device has not that much; 0 bytes is an empty buffer.
  static Result<DeviceBuffer> create(DevicePtr device, std::size_t bytes);
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  DevicePointer address() const { return address_; }
  std::size_t size() const { return size_; }
  /// Queued; `from` must stay valid until the stream has passed it unless it is pageable memory.
  /// Fails with kInternal when the range leaves the buffer.
  Status upload(const Stream& stream, const void* from, std::size_t bytes,
                std::size_t offset = 0) const;
  Status download(const Stream& stream, void* to, std::size_t bytes, std::size_t offset = 0) const;
  Status fill(const Stream& stream, unsigned char value, std::size_t bytes,
              std::size_t offset = 0) const;

 private:
  DevicePtr device_;
  DevicePointer address_ = 0;
  std::size_t size_ = 0;
};

/// Page-locked host memory for staging: pages of the process, present before the driver locks them.
/// On an H200 host that takes 0.3 to 0.8 ms of the driver's time for 4 MB, and cuMemHostAlloc 2 ms,
/// during which nobody else loads a kernel or makes memory.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> create(DevicePtr device, std::size_t bytes);
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer();
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), size_}; }

 private:
  DevicePtr device_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Page-locked memory for what differs in size from use to use. What became too small is kept: to
/// give a buffer back the driver waits until the device is idle, a third of a second beside the
/// domain stage, and keeps everyone else out meanwhile.
class GrowingPinnedBuffer {
 public:
  /// At least `bytes`, rounded up to a power of two, and no less than `least`; contents are lost
  /// when it grows. On failure it stays as it is.
  Status reserve(const DevicePtr& device, std::size_t bytes, std::size_t least);
  std::span<std::byte> bytes() const {
    return buffers_.empty() ? std::span<std::byte>() : buffers_.back().bytes();
  }

 private:
  std::vector<PinnedBuffer> buffers_;  // the last is the one in use
};

/// Resources of a loaded kernel on one device, by the driver.
struct LoadedResources {
  int registers = 0, local_bytes = 0, static_shared_bytes = 0, max_threads = 0;
  int blocks_per_sm = 0;  ///< for the block and shared memory asked about
};

struct LaunchGrid {
  unsigned blocks = 1;
  unsigned block_threads = 32;
  unsigned dynamic_shared_bytes = 0;
  unsigned blocks_y = 1, blocks_z = 1;
  unsigned threads_y = 1, threads_z = 1;  ///< of a block, beside block_threads along x
};

/// An image loaded for all devices of the process.
class LoadedKernel {
 public:
  /// Cubin, or PTX text (which the driver compiles now). Fails with kCompile when the driver
  /// refuses the image: forget its cache entry and make it again, once.
  static Result<std::shared_ptr<LoadedKernel>> load(std::shared_ptr<Driver> driver,
                                                    std::string_view image,
                                                    const std::string& entry_name);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  /// Prepares a device: allows the dynamic shared memory and asks for the occupancy, to be compared
  /// with the plan's.
  Result<LoadedResources> prepare(const Device& device, int block_threads,
                                  std::int64_t dynamic_shared_bytes) const;
  /// Queues one launch; `parameters` points at the kernel's single struct argument, copied at once.
  Status launch(const Stream& stream, const LaunchGrid& grid, const void* parameters) const;
  KernelHandle handle() const { return kernel_; }

 private:
  LoadedKernel() = default;
  std::shared_ptr<Driver> driver_;
  LibraryHandle library_ = nullptr;
  KernelHandle kernel_ = nullptr;
  std::string entry_name_;
};

/// True from the moment the process begins to exit: no destructor calls the driver then.
bool process_is_exiting();

/// Ends the process with `status` at once if any device was abandoned, else returns: the exit
/// handlers of a driver whose kernel does not end need not return either. Call it when all output
/// is written; it flushes the standard streams.
void end_process_beside_abandoned(int status);

}  // namespace hmmjit::driver
