#include "driver/driver.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/aligned.hpp"

namespace hmmjit::driver {
namespace {

std::atomic<bool> exiting{false};
std::atomic<bool> any_abandoned{false};

/// Call it once a driver is open. Exit handlers run before the destructors of statics constructed
/// earlier: a host program's statics with driver objects see the flag.
void watch_exit() {
  static const int registered = std::atexit([] { exiting.store(true); });
  (void)registered;
}

constexpr int kOldestVersion = 12000;  // context-independent loading came with CUDA 12.0

ErrorCode code_of(int result) {
  switch (result) {
    case code::kOutOfMemory:
      return ErrorCode::kResources;
    case code::kNoDevice:
    case code::kInvalidDevice:
    case code::kStubLibrary:
      return ErrorCode::kNoDevice;
    case code::kInvalidImage:
    case code::kNoBinaryForGpu:
    case code::kInvalidPtx:
    case code::kUnsupportedPtxVersion:
    case code::kInvalidSource:
    case code::kNotFound:
      return ErrorCode::kCompile;
    default:
      return ErrorCode::kInternal;
  }
}

const char* remedy_of(int result) {
  switch (result) {
    case code::kOutOfMemory:
      return "free device memory or let the search use less of it";
    case code::kDeviceUnavailable:
      return "another process may have the device to itself: see nvidia-smi, also its compute mode";
    case code::kEccUncorrectable:
      return "the device's memory has failed: see nvidia-smi -q -d ECC, and reset the device";
    case code::kUnsupportedPtxVersion:
      return "the compiler is newer than the driver: update the driver or install an older NVRTC";
    case code::kNoBinaryForGpu:
    case code::kInvalidPtx:
    case code::kInvalidImage:
      return "the image is damaged or for another architecture; it is made again once";
    case code::kIllegalAddress:
    case code::kLaunchFailed:
      return "this is a bug in a kernel";
    case code::kSystemDriverMismatch:
      return "the kernel module and libcuda differ: reboot after a driver update";
    default:
      return "";
  }
}

/// For calls that show whether a device can be used: converts any failure to kNoDevice.
template <typename T>
Result<T> of_start(Result<T> result) {
  if (!result && result.error().code == ErrorCode::kInternal)
    result.error().code = ErrorCode::kNoDevice;
  return result;
}

/// "8.7" from the `.version` directive of a PTX text, or "of an unknown version".
std::string ptx_version(const std::string& image) {
  constexpr std::string_view kDirective = ".version";
  const std::size_t at = image.find(kDirective);
  const std::size_t begin =
      at == std::string::npos ? at : image.find_first_of("0123456789", at + kDirective.size());
  if (begin == std::string::npos) return "of an unknown version";
  return image.substr(begin, image.find_first_not_of("0123456789.", begin) - begin);
}

}  // namespace

bool process_is_exiting() { return exiting.load(std::memory_order_relaxed); }

void leave_devices_to_the_system() { any_abandoned = true; }

void end_process_beside_abandoned(int status) {
  if (!any_abandoned.load()) return;
  std::fflush(nullptr);
  std::_Exit(status);
}

// ---- Driver -------------------------------------------------------------------------------------

std::shared_ptr<Driver> Driver::open() {
  std::shared_ptr<Driver> driver(new Driver);
  CudaLibrary library = open_cuda_library();
  driver->report_ = std::move(library.report);
  if (driver->report_.state != DriverState::kReady) return driver;
  driver->api_ = library.api;
  driver->initialise();
  return driver;
}

std::shared_ptr<Driver> Driver::open(const DriverApi& api) {
  std::shared_ptr<Driver> driver(new Driver);
  driver->api_ = api;
  driver->report_.state = DriverState::kReady;
  driver->report_.path = "given table";
  driver->initialise();
  return driver;
}

void Driver::initialise() {
  watch_exit();
  const auto set = [&](DriverState state, std::string message, std::string remedy) {
    report_.state = state;
    report_.message = std::move(message);
    report_.remedy = std::move(remedy);
  };
  const int result = api_.init(0);
  api_.driver_version(&report_.version);
  if (result == code::kStubLibrary) {
    set(DriverState::kStub,
        fmt::format("{} is the CUDA toolkit's stub library, not a driver", report_.path),
        "remove the toolkit's stubs folder from LD_LIBRARY_PATH, or install the NVIDIA driver");
    return;
  }
  if (result == code::kSuccess && report_.version < kOldestVersion) {
    set(DriverState::kTooOld,
        fmt::format("the NVIDIA driver serves CUDA {}.{}", report_.version / 1000,
                    report_.version % 1000 / 10),
        "update the driver: hmmjit needs one for CUDA 12.0 (525) or newer");
    return;
  }
  int count = 0;
  const int counted = result == code::kSuccess ? api_.device_count(&count) : result;
  if (counted == code::kNoDevice || (counted == code::kSuccess && count == 0)) {
    set(DriverState::kNoDevice, "the NVIDIA driver sees no GPU",
        "check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, that GPUs are passed in");
    return;
  }
  if (counted != code::kSuccess) {
    const Status status = check(counted, result == code::kSuccess ? "cuDeviceGetCount" : "cuInit");
    set(DriverState::kFailed,
        fmt::format("the NVIDIA driver does not start: {}", status.error().message),
        status.error().remedy.empty() ? "check nvidia-smi" : status.error().remedy);
    return;
  }
  device_count_ = count;
  report_.message = fmt::format("NVIDIA driver for CUDA {}.{}, {} device{}", report_.version / 1000,
                                report_.version % 1000 / 10, count, count == 1 ? "" : "s");
}

Status Driver::require() const {
  if (ready()) return {};
  return std::unexpected(error_of(report_));
}

Status Driver::check(int result, std::string_view call) const {
  if (result == code::kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.error_name == nullptr || api_.error_name(result, &name) != code::kSuccess)
    name = nullptr;
  if (api_.error_string == nullptr || api_.error_string(result, &text) != code::kSuccess) {
    text = nullptr;
  }
  return fail(code_of(result),
              fmt::format("{}: {} ({})", call, text != nullptr ? text : "unknown error",
                          name != nullptr ? std::string(name) : fmt::format("code {}", result)),
              "NVIDIA driver", remedy_of(result));
}

Result<plan::DeviceTraits> Driver::traits(int ordinal) const {
  HMMJIT_TRY(require());
  if (ordinal < 0 || ordinal >= device_count_) {
    return fail(ErrorCode::kNoDevice,
                fmt::format("there is no device {}: this machine has {}", ordinal, device_count_));
  }
  int device = 0;
  HMMJIT_TRY(check(api_.device_get(&device, ordinal), "cuDeviceGet"));
  plan::DeviceTraits t;
  t.live = true;
  char name[256] = "";
  HMMJIT_TRY(check(api_.device_name(name, sizeof name, device), "cuDeviceGetName"));
  name[sizeof name - 1] = '\0';
  t.name = name;
  std::size_t bytes = 0;
  HMMJIT_TRY(check(api_.device_memory(&bytes, device), "cuDeviceTotalMem"));
  t.memory_bytes = static_cast<std::int64_t>(bytes);

  int l2 = 0, memory_khz = 0, bus_bits = 0;
  struct Item {
    int attribute;
    int* value;
    bool needed;
  };
  const Item items[] = {{attribute::kMajor, &t.major, true},
                        {attribute::kMinor, &t.minor, true},
                        {attribute::kSmCount, &t.sm_count, true},
                        {attribute::kThreadsPerSm, &t.max_threads_per_sm, true},
                        {attribute::kBlocksPerSm, &t.max_blocks_per_sm, true},
                        {attribute::kRegistersPerSm, &t.registers_per_sm, true},
                        {attribute::kSharedPerSm, &t.shared_per_sm, true},
                        {attribute::kSharedPerBlockOptin, &t.shared_per_block_limit, true},
                        {attribute::kSharedReservedPerBlock, &t.shared_reserved_per_block, false},
                        {attribute::kClockRate, &t.clock_khz, false},
                        {attribute::kL2Bytes, &l2, false},
                        {attribute::kMemoryClockRate, &memory_khz, false},
                        {attribute::kMemoryBusWidth, &bus_bits, false}};
  for (const Item& item : items) {
    const int result = api_.device_attribute(item.value, item.attribute, device);
    if (item.needed) HMMJIT_TRY(check(result, "cuDeviceGetAttribute"));
  }
  t.l2_bytes = l2;
  // All memory types of these devices make two transfers per clock.
  t.memory_bandwidth = 2.0 * memory_khz * 1e3 * bus_bits / 8;
  // Newer drivers do not report clocks. Predictions then use the figures of a known device: of the
  // nearest architecture not above this one's, preferably with a name that is part of this one's
  // ("NVIDIA H200").
  if (t.clock_khz <= 0 || t.memory_bandwidth <= 0) {
    const plan::DeviceTraits* known = nullptr;
    std::pair<int, std::size_t> best;  // capability, length of the matching name
    for (const plan::DeviceTraits& entry : plan::device_table()) {
      if (entry.capability() > t.capability()) continue;
      const bool named = t.name.find(entry.name) != std::string::npos;
      const std::pair match(entry.capability(), named ? entry.name.size() : 0);
      if (known == nullptr || match > best) {
        known = &entry;
        best = match;
      }
    }
    if (known != nullptr) {
      if (t.clock_khz <= 0) t.clock_khz = known->clock_khz;
      if (t.memory_bandwidth <= 0) t.memory_bandwidth = known->memory_bandwidth;
    }
  }
  return t;
}

Result<std::shared_ptr<Device>> Driver::device(int ordinal) {
  {
    const std::lock_guard guard(mutex_);
    if (const auto found = devices_.find(ordinal); found != devices_.end()) return found->second;
  }
  // Without the lock: making a context takes a sixth of a second.
  auto device = std::make_shared<Device>();
  HMMJIT_ASSIGN(device->traits_, traits(ordinal));
  HMMJIT_TRY(check(api_.device_get(&device->handle_, ordinal), "cuDeviceGet"));
  HMMJIT_TRY(of_start(
      check(api_.context_retain(&device->context_, device->handle_), "cuDevicePrimaryCtxRetain")));
  device->driver_ = this;
  device->ordinal_ = ordinal;
  const std::lock_guard guard(mutex_);
  return devices_.emplace(ordinal, device).first->second;
}

// ---- Device -------------------------------------------------------------------------------------

Status Device::use() const {
  return driver_->check(api().context_set_current(context_), "cuCtxSetCurrent");
}

Status Device::synchronize() const {
  return call("cuCtxSynchronize", &DriverApi::context_synchronize);
}

Result<Device::Memory> Device::memory() const {
  std::size_t free = 0, total = 0;
  HMMJIT_TRY(of_start(call("cuMemGetInfo", &DriverApi::memory_info, &free, &total)));
  return Memory{free, total};
}

void Device::abandon() {
  abandoned_.store(true);
  driver_->device_abandoned_.store(true);
  any_abandoned.store(true);
}

namespace {

// True if a stream is empty or an event has passed.
template <typename Handle>
Result<bool> is_done(const Owned<Handle>& handle, std::string_view name,
                     int (*DriverApi::*query)(Handle)) {
  const Device& device = *handle.device();
  HMMJIT_TRY(device.use());
  const int result = (device.api().*query)(handle.value());
  if (result == code::kNotReady) return false;
  HMMJIT_TRY(device.driver().check(result, name));
  return true;
}

}  // namespace

// ---- Stream -------------------------------------------------------------------------------------

Result<Stream> Stream::create(DevicePtr device, bool urgent) {
  constexpr unsigned kNonBlocking = 1;  // independent of the legacy default stream
  StreamHandle handle = nullptr;
  HMMJIT_TRY(device->call("cuStreamCreateWithPriority", &DriverApi::stream_create, &handle,
                          kNonBlocking, urgent ? -1 : 0));
  Stream stream;
  stream.handle_ = {std::move(device), handle,
                    [](const DriverApi& a, const StreamHandle& h) { a.stream_destroy(h); }};
  return stream;
}
Stream Stream::borrow(DevicePtr device, StreamHandle handle) {
  Stream stream;
  stream.handle_ = {std::move(device), handle, nullptr};
  return stream;
}
Status Stream::synchronize() const {
  return device()->call("cuStreamSynchronize", &DriverApi::stream_synchronize, handle());
}
Result<bool> Stream::finished() const {
  return is_done(handle_, "cuStreamQuery", &DriverApi::stream_query);
}

// Not cuLaunchHostFunc, the successor: it makes no call after an error.
Status Stream::then(StreamCallback callback, void* argument) const {
  return device()->call("cuStreamAddCallback", &DriverApi::stream_add_callback, handle(), callback,
                        argument, 0);
}

// ---- Event --------------------------------------------------------------------------------------

Result<Event> Event::create(DevicePtr device, bool timing) {
  constexpr unsigned kDisableTiming = 2;
  EventHandle handle = nullptr;
  HMMJIT_TRY(device->call("cuEventCreate", &DriverApi::event_create, &handle,
                          timing ? 0 : kDisableTiming));
  Event event;
  event.handle_ = {std::move(device), handle,
                   [](const DriverApi& a, const EventHandle& h) { a.event_destroy(h); }};
  return event;
}
Result<Event> Event::now(const DevicePtr& device) {
  HMMJIT_ASSIGN(const Stream stream, of_start(Stream::create(device)));
  HMMJIT_ASSIGN(Event event, of_start(create(device, true)));
  HMMJIT_TRY(of_start(event.record(stream)));
  HMMJIT_TRY(of_start(stream.synchronize()));
  return event;
}
Status Event::record(const Stream& stream) {
  return handle_.device()->call("cuEventRecord", &DriverApi::event_record, handle(),
                                stream.handle());
}
Status Event::synchronize() const {
  return handle_.device()->call("cuEventSynchronize", &DriverApi::event_synchronize, handle());
}
Result<bool> Event::finished() const {
  return is_done(handle_, "cuEventQuery", &DriverApi::event_query);
}
Status Event::wait_in(const Stream& stream) const {
  return handle_.device()->call("cuStreamWaitEvent", &DriverApi::stream_wait_event, stream.handle(),
                                handle(), 0);
}
Result<float> Event::milliseconds(const Event& start, const Event& end) {
  float out = 0;
  HMMJIT_TRY(start.handle_.device()->call("cuEventElapsedTime", &DriverApi::event_elapsed, &out,
                                          start.handle(), end.handle()));
  return out;
}

// ---- Memory -------------------------------------------------------------------------------------

Result<DeviceBuffer> DeviceBuffer::create(DevicePtr device, std::size_t bytes) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  Range range{.size = bytes};
  auto status = device->call("cuMemAlloc", &DriverApi::memory_allocate, &range.address, bytes);
  if (!status) {
    status.error().message += fmt::format(", {} bytes wanted", bytes);
    return std::unexpected(status.error());
  }
  buffer.range_ = {std::move(device), range,
                   [](const DriverApi& a, const Range& r) { a.memory_free(r.address); }};
  return buffer;
}

Result<DevicePointer> DeviceBuffer::at(std::size_t offset, std::size_t bytes,
                                       const char* what) const {
  if (offset <= size() && bytes <= size() - offset) return address() + offset;
  return fail(ErrorCode::kInternal, fmt::format("{} of {} bytes at {} leaves a device buffer of {}",
                                                what, bytes, offset, size()));
}

Status DeviceBuffer::upload(const Stream& stream, const void* from, std::size_t bytes,
                            std::size_t offset) const {
  HMMJIT_ASSIGN(const DevicePointer to, at(offset, bytes, "upload"));
  if (bytes == 0) return {};
  return range_.device()->call("cuMemcpyHtoDAsync", &DriverApi::copy_to_device, to, from, bytes,
                               stream.handle());
}
Status DeviceBuffer::download(const Stream& stream, void* to, std::size_t bytes,
                              std::size_t offset) const {
  HMMJIT_ASSIGN(const DevicePointer from, at(offset, bytes, "download"));
  if (bytes == 0) return {};
  return range_.device()->call("cuMemcpyDtoHAsync", &DriverApi::copy_to_host, to, from, bytes,
                               stream.handle());
}
Status DeviceBuffer::fill(const Stream& stream, unsigned char value, std::size_t bytes,
                          std::size_t offset) const {
  HMMJIT_ASSIGN(const DevicePointer from, at(offset, bytes, "fill"));
  if (bytes == 0) return {};
  return range_.device()->call("cuMemsetD8Async", &DriverApi::fill, from, value, bytes,
                               stream.handle());
}

namespace {

// Maps whole pages and makes them present; null without memory.
void* map_present_pages(std::size_t bytes) {
  auto* const first = static_cast<std::byte*>(map_large_pages(bytes));
  const std::size_t page = whole_pages(1);
  for (std::size_t at = 0; first != nullptr && at < bytes; at += page)
    *static_cast<volatile std::byte*>(first + at) = std::byte{};
  return first;
}

}  // namespace

Result<PinnedBuffer> PinnedBuffer::create(DevicePtr device, std::size_t bytes) {
  constexpr unsigned kPortable = 1;  // pinned for all contexts of the process
  PinnedBuffer buffer;
  if (bytes == 0) return buffer;
  HMMJIT_TRY(device->use());
  const std::size_t mapped = whole_pages(bytes);
  void* const data = map_present_pages(mapped);
  if (data == nullptr) {
    return fail(ErrorCode::kResources,
                fmt::format("out of host memory: {} bytes for copies to the device", bytes));
  }
  const Status status = device->driver().check(device->api().host_register(data, mapped, kPortable),
                                               "cuMemHostRegister");
  if (!status) {
    ::munmap(data, mapped);
    return std::unexpected(status.error());
  }
  buffer.bytes_ = {std::move(device),
                   {static_cast<std::byte*>(data), bytes},
                   [](const DriverApi& a, const std::span<std::byte>& pages) {
                     a.host_unregister(pages.data());
                     ::munmap(pages.data(), whole_pages(pages.size()));
                   }};
  return buffer;
}

Status GrowingPinnedBuffer::reserve(const DevicePtr& device, std::size_t bytes, std::size_t least) {
  if (bytes <= this->bytes().size()) return {};
  HMMJIT_ASSIGN(PinnedBuffer buffer,
                PinnedBuffer::create(device, std::bit_ceil(std::max(bytes, least))));
  buffers_.push_back(std::move(buffer));
  return {};
}

// ---- Kernels ------------------------------------------------------------------------------------

Result<std::shared_ptr<LoadedKernel>> LoadedKernel::load(std::shared_ptr<Driver> driver,
                                                         std::string_view image,
                                                         const std::string& entry_name) {
  HMMJIT_TRY(driver->require());
  std::shared_ptr<LoadedKernel> kernel(new LoadedKernel);
  // PTX needs a NUL at its end; a cubin has its size in its headers.
  const bool cubin = image.starts_with("\177ELF");
  const std::string text(cubin ? std::string_view() : image);
  const int loaded =
      driver->api().library_load(&kernel->library_, cubin ? image.data() : text.c_str(), nullptr,
                                 nullptr, 0, nullptr, nullptr, 0);
  if (loaded == code::kUnsupportedPtxVersion) {
    const int version = driver->report().version;
    return fail(ErrorCode::kCompile,
                fmt::format("the kernel is PTX {}, which the driver, made for CUDA {}.{}, does not "
                            "read",
                            ptx_version(text), version / 1000, version % 1000 / 10),
                "NVIDIA driver", remedy_of(loaded));
  }
  HMMJIT_TRY(driver->check(loaded, "cuLibraryLoadData"));
  kernel->driver_ = driver;
  HMMJIT_TRY(driver->check(
      driver->api().library_kernel(&kernel->kernel_, kernel->library_, entry_name.c_str()),
      "cuLibraryGetKernel"));
  kernel->entry_name_ = entry_name;
  return kernel;
}

LoadedKernel::~LoadedKernel() {
  if (driver_ == nullptr || library_ == nullptr || process_is_exiting()) return;
  // An image serves all devices; an abandoned device may still run it.
  if (!driver_->device_abandoned_.load()) driver_->api().library_unload(library_);
}

Result<LoadedResources> LoadedKernel::prepare(const Device& device, int block_threads,
                                              std::int64_t dynamic_shared_bytes) const {
  const DriverApi& a = driver_->api();
  HMMJIT_TRY(device.use());
  LoadedResources out;
  const std::pair<int, int*> items[] = {{attribute::kKernelRegisters, &out.registers},
                                        {attribute::kKernelLocalBytes, &out.local_bytes},
                                        {attribute::kKernelStaticShared, &out.static_shared_bytes},
                                        {attribute::kKernelMaxThreads, &out.max_threads}};
  for (const auto& [attribute, value] : items) {
    HMMJIT_TRY(driver_->check(a.kernel_attribute(value, attribute, kernel_, device.handle()),
                              "cuKernelGetAttribute"));
  }
  if (dynamic_shared_bytes > 0) {
    HMMJIT_TRY(driver_->check(
        a.kernel_set_attribute(attribute::kKernelMaxDynamicShared,
                               static_cast<int>(dynamic_shared_bytes), kernel_, device.handle()),
        "cuKernelSetAttribute"));
  }
  HMMJIT_TRY(driver_->check(a.occupancy(&out.blocks_per_sm, kernel_, block_threads,
                                        static_cast<std::size_t>(dynamic_shared_bytes)),
                            "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  if (out.blocks_per_sm < 1) {
    return fail(ErrorCode::kCompile,
                fmt::format("{} does not fit an SM of {}: {} threads x {} registers, {} + {} bytes "
                            "of shared memory",
                            entry_name_, device.traits().name, block_threads, out.registers,
                            out.static_shared_bytes, dynamic_shared_bytes));
  }
  return out;
}

Status LoadedKernel::launch(const Stream& stream, const LaunchGrid& grid,
                            const void* parameters) const {
  void* arguments[] = {const_cast<void*>(parameters)};
  return stream.device()->call("cuLaunchKernel", &DriverApi::launch, kernel_, grid.blocks,
                               grid.blocks_y, grid.blocks_z, grid.block_threads, grid.threads_y,
                               grid.threads_z, grid.dynamic_shared_bytes, stream.handle(),
                               arguments, nullptr);
}

}  // namespace hmmjit::driver
