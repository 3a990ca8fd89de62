#include "fake_driver/fake_driver.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace hmmjit::tests {

using namespace hmmjit::driver;

struct FakeDriver::State {
  FakeDriver* owner = nullptr;
  std::vector<plan::DeviceTraits> devices;
  struct Failure {
    int code, nth;
    bool always;
  };
  mutable std::mutex mutex;
  std::map<std::string, Failure> failures;
  std::map<std::string, int> calls;
  int total = 0, lost_from = 0, lost_code = 0;  // lost_from 0: never
  std::map<std::string, int> alive;
  std::map<DevicePointer, std::pair<std::size_t, int>> memory;  // bytes, device
  std::map<std::uintptr_t, std::size_t> registered;             // host memory: bytes
  std::map<int, std::size_t> used;
  std::map<LibraryHandle, std::string> images;
  std::set<StreamHandle> running;  // streams that nobody has waited for since their last launch
  struct Kernel {
    std::string name, image;
    std::map<int, int> dynamic_limit;
  };
  std::map<KernelHandle, std::unique_ptr<Kernel>> kernels;
  int next_handle = 1;
};

namespace {

FakeDriver::State* g_state = nullptr;
thread_local int t_device = -1, t_inside = 0;
struct Inside {
  Inside() { ++t_inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { --t_inside; }
};

/// Counts the call; the code to return instead of doing it, or 0.
int enter(const char* member) {
  auto& s = *g_state;
  if (s.owner->on_call) {
    if (const int code = s.owner->on_call(member, t_device)) return code;
  }
  const std::lock_guard guard(s.mutex);
  ++s.calls[member];
  if (++s.total >= s.lost_from && s.lost_from > 0) return s.lost_code;
  const auto found = s.failures.find(member);
  if (found == s.failures.end()) return 0;
  if (--found->second.nth > 0) return 0;
  const int code = found->second.code;
  if (!found->second.always) s.failures.erase(found);
  return code;
}

#define ENTER(member)   \
  const Inside in_call; \
  if (const int refused = enter(member)) return refused

/// A call without an effect.
int only(const char* member) {
  ENTER(member);
  return 0;
}

void count(const char* kind, int by) {
  const std::lock_guard guard(g_state->mutex);
  g_state->alive[kind] += by;
}

template <typename Handle>
Handle next_handle() {
  const std::lock_guard guard(g_state->mutex);
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(g_state->next_handle++) * 16);
}

bool current_device_missing() { return t_device < 0; }

int look_up(const std::map<int, int>& values, int which, int* value) {
  const auto found = values.find(which);
  if (found == values.end()) return code::kInvalidValue;
  *value = found->second;
  return 0;
}

int fake_init(unsigned) {
  ENTER("init");
  return g_state->owner->init_code;
}
int fake_version(int* version) {
  ENTER("driver_version");
  *version = g_state->owner->version;
  return 0;
}
int fake_error_name(int result, const char** name) {
  thread_local char text[32];
  std::snprintf(text, sizeof text, "FAKE_ERROR_%d", result);
  *name = text;
  return 0;
}
int fake_error_string(int result, const char** text) {
  *text = result == code::kOutOfMemory ? "out of memory" : "injected failure";
  return 0;
}
int fake_device_count(int* out) {
  ENTER("device_count");
  *out = static_cast<int>(g_state->devices.size());
  return 0;
}
int fake_device_get(int* device, int ordinal) {
  ENTER("device_get");
  if (ordinal < 0 || ordinal >= static_cast<int>(g_state->devices.size())) {
    return code::kInvalidDevice;
  }
  *device = ordinal;
  return 0;
}
int fake_device_name(char* name, int length, int device) {
  ENTER("device_name");
  std::snprintf(name, static_cast<std::size_t>(length), "%s",
                g_state->devices[static_cast<std::size_t>(device)].name.c_str());
  return 0;
}
int fake_device_attribute(int* value, int which, int device) {
  ENTER("device_attribute");
  const plan::DeviceTraits& t = g_state->devices[static_cast<std::size_t>(device)];
  const std::map<int, int> values{{attribute::kMajor, t.major},
                                  {attribute::kMinor, t.minor},
                                  {attribute::kSmCount, t.sm_count},
                                  {attribute::kThreadsPerSm, t.max_threads_per_sm},
                                  {attribute::kBlocksPerSm, t.max_blocks_per_sm},
                                  {attribute::kRegistersPerSm, t.registers_per_sm},
                                  {attribute::kSharedPerSm, t.shared_per_sm},
                                  {attribute::kSharedPerBlockOptin, t.shared_per_block_limit},
                                  {attribute::kSharedReservedPerBlock, t.shared_reserved_per_block},
                                  {attribute::kL2Bytes, static_cast<int>(t.l2_bytes)},
                                  {attribute::kClockRate, t.clock_khz}};
  return look_up(values, which, value);
}
int fake_device_memory(std::size_t* bytes, int device) {
  ENTER("device_memory");
  *bytes =
      static_cast<std::size_t>(g_state->devices[static_cast<std::size_t>(device)].memory_bytes);
  return 0;
}
int fake_context_retain(ContextHandle* context, int device) {
  ENTER("context_retain");
  *context = reinterpret_cast<ContextHandle>(static_cast<std::uintptr_t>(device + 1));
  count("context", 1);
  return 0;
}
int fake_context_set_current(ContextHandle context) {
  ENTER("context_set_current");
  t_device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  return 0;
}
int fake_library_load(LibraryHandle* library, const void* image, int*, void**, unsigned, int*,
                      void**, unsigned) {
  ENTER("library_load");
  if (image == nullptr || *static_cast<const char*>(image) == '\0') return code::kInvalidImage;
  if (g_state->owner->refuses && g_state->owner->refuses(static_cast<const char*>(image)))
    return code::kInvalidImage;
  *library = next_handle<LibraryHandle>();
  count("library", 1);
  const std::lock_guard guard(g_state->mutex);
  g_state->images[*library] = static_cast<const char*>(image);
  return 0;
}
int fake_library_unload(LibraryHandle) {
  ENTER("library_unload");
  count("library", -1);
  return 0;
}
int fake_library_kernel(KernelHandle* kernel, LibraryHandle library, const char* name) {
  ENTER("library_kernel");
  const auto& known = g_state->owner->kernels;
  if (!known.empty() && !known.contains(name)) return code::kNotFound;
  *kernel = next_handle<KernelHandle>();
  const std::lock_guard guard(g_state->mutex);
  g_state->kernels[*kernel] = std::make_unique<FakeDriver::State::Kernel>();
  g_state->kernels[*kernel]->name = name;
  g_state->kernels[*kernel]->image = g_state->images.at(library);
  return 0;
}
int fake_kernel_attribute(int* value, int which, KernelHandle kernel, int) {
  ENTER("kernel_attribute");
  const FakeDriver& d = *g_state->owner;
  const std::lock_guard guard(g_state->mutex);
  const auto own = d.local_bytes_of.find(g_state->kernels.at(kernel)->name);
  const std::map<int, int> values{
      {attribute::kKernelRegisters, d.registers},
      {attribute::kKernelLocalBytes, own != d.local_bytes_of.end() ? own->second : d.local_bytes},
      {attribute::kKernelStaticShared, d.static_shared},
      {attribute::kKernelMaxThreads, d.max_threads}};
  return look_up(values, which, value);
}
int fake_kernel_set_attribute(int which, int value, KernelHandle kernel, int device) {
  ENTER("kernel_set_attribute");
  if (which != attribute::kKernelMaxDynamicShared ||
      value > g_state->devices[static_cast<std::size_t>(device)].shared_per_block_limit) {
    return code::kInvalidValue;
  }
  const std::lock_guard guard(g_state->mutex);
  g_state->kernels.at(kernel)->dynamic_limit[device] = value;
  return 0;
}
int fake_occupancy(int* blocks, KernelHandle, int, std::size_t) {
  ENTER("occupancy");
  *blocks = g_state->owner->blocks_per_sm;
  return 0;
}
int fake_launch(KernelHandle kernel, unsigned grid, unsigned grid_y, unsigned, unsigned block,
                unsigned, unsigned, unsigned shared, StreamHandle stream, void** parameters,
                void**) {
  ENTER("launch");
  if (current_device_missing()) return code::kNotInitialized;
  constexpr unsigned kWithoutOptIn = 48 * 1024;
  std::string name, image;
  {
    const std::lock_guard guard(g_state->mutex);
    g_state->running.insert(stream);
    const auto& k = *g_state->kernels.at(kernel);
    name = k.name;
    image = k.image;
    const auto limit = k.dynamic_limit.find(t_device);
    const unsigned allowed =
        limit == k.dynamic_limit.end() ? kWithoutOptIn : static_cast<unsigned>(limit->second);
    if (shared > std::max(allowed, kWithoutOptIn)) return code::kInvalidValue;
  }
  if (grid == 0 || block == 0 || block > 1024) return code::kInvalidValue;
  if (!g_state->owner->on_launch) return 0;
  return g_state->owner->on_launch(
      {name, t_device, grid, block, shared, parameters[0], grid_y, image});
}
int fake_memory_info(std::size_t* free, std::size_t* total) {
  ENTER("memory_info");
  const std::lock_guard guard(g_state->mutex);
  *total = g_state->owner->memory_limit;
  *free = *total - g_state->used[t_device];
  return 0;
}
int fake_memory_allocate(DevicePointer* pointer, std::size_t bytes) {
  ENTER("memory_allocate");
  if (current_device_missing()) return code::kNotInitialized;
  const std::lock_guard guard(g_state->mutex);
  if (g_state->used[t_device] + bytes > g_state->owner->memory_limit) return code::kOutOfMemory;
  void* host = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  // Device memory is not zeroed either. All of a large workspace would cost page faults.
  std::memset(host, 0xa5, std::min<std::size_t>(bytes, std::size_t{4} << 20));
  *pointer = reinterpret_cast<DevicePointer>(host);
  g_state->memory[*pointer] = {bytes, t_device};
  g_state->used[t_device] += bytes;
  ++g_state->alive["memory"];
  return 0;
}
int fake_memory_free(DevicePointer pointer) {
  ENTER("memory_free");
  const std::lock_guard guard(g_state->mutex);
  const auto found = g_state->memory.find(pointer);
  if (found == g_state->memory.end()) return code::kInvalidValue;
  g_state->used[found->second.second] -= found->second.first;
  g_state->memory.erase(found);
  --g_state->alive["memory"];
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}
int fake_host_register(void* data, std::size_t bytes, unsigned) {
  ENTER("host_register");
  count("registered", 1);
  const std::lock_guard guard(g_state->mutex);
  g_state->registered[reinterpret_cast<std::uintptr_t>(data)] = bytes;
  return 0;
}
int fake_host_unregister(void* data) {
  ENTER("host_unregister");
  count("registered", -1);
  const std::lock_guard guard(g_state->mutex);
  g_state->registered.erase(reinterpret_cast<std::uintptr_t>(data));
  return 0;
}
/// A driver refuses host memory that is registered only in part, or by two calls.
bool partly_registered(const void* data, std::size_t bytes) {
  const std::lock_guard guard(g_state->mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto after = g_state->registered.lower_bound(address + bytes);
  if (bytes == 0 || after == g_state->registered.begin()) return false;
  const auto [first, size] = *std::prev(after);
  return first + size > address && (first > address || first + size < address + bytes);
}
/// True if [address, address + bytes) lies in one allocation.
bool inside(DevicePointer address, std::size_t bytes) {
  const std::lock_guard guard(g_state->mutex);
  auto after = g_state->memory.upper_bound(address);
  if (after == g_state->memory.begin()) return false;
  --after;
  return address - after->first + bytes <= after->second.first;
}
int fake_copy_to_device(DevicePointer to, const void* from, std::size_t bytes, StreamHandle) {
  ENTER("copy_to_device");
  if (!inside(to, bytes) || partly_registered(from, bytes)) return code::kInvalidValue;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int fake_copy_to_host(void* to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  ENTER("copy_to_host");
  {
    const std::lock_guard guard(g_state->mutex);
    if (g_state->running.contains(stream)) ++g_state->calls["copy_behind_kernel"];
  }
  if (!inside(from, bytes) || partly_registered(to, bytes)) return code::kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
int fake_fill(DevicePointer to, unsigned char value, std::size_t bytes, StreamHandle) {
  ENTER("fill");
  if (!inside(to, bytes)) return code::kInvalidValue;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
int fake_stream_create(StreamHandle* stream, unsigned flags, int) {
  ENTER("stream_create");
  if (flags > 1) return code::kInvalidValue;
  *stream = next_handle<StreamHandle>();
  count("stream", 1);
  return 0;
}
int fake_stream_destroy(StreamHandle) {
  ENTER("stream_destroy");
  count("stream", -1);
  return 0;
}
void waited_for(StreamHandle stream) {
  const std::lock_guard guard(g_state->mutex);
  g_state->running.erase(stream);
}
int fake_stream_synchronize(StreamHandle stream) {
  ENTER("stream_synchronize");
  waited_for(stream);
  return 0;
}
int fake_stream_add_callback(StreamHandle stream, StreamCallback callback, void* argument,
                             unsigned) {
  ENTER("stream_add_callback");
  waited_for(stream);
  const auto end = [=, result = enter("stream_end")] { callback(stream, result, argument); };
  if (g_state->owner->on_stream_end) {
    g_state->owner->on_stream_end(end);
  } else {
    end();
  }
  return 0;
}
int fake_event_create(EventHandle* event, unsigned) {
  ENTER("event_create");
  *event = next_handle<EventHandle>();
  count("event", 1);
  return 0;
}
int fake_event_destroy(EventHandle) {
  ENTER("event_destroy");
  count("event", -1);
  return 0;
}
int fake_event_elapsed(float* milliseconds, EventHandle, EventHandle) {
  ENTER("event_elapsed");
  *milliseconds = g_state->owner->elapsed_milliseconds;
  return 0;
}

}  // namespace

FakeDriver::FakeDriver(std::vector<plan::DeviceTraits> devices) : state_(new State) {
  state_->owner = this;
  state_->devices = std::move(devices);
  g_state = state_.get();
}

FakeDriver::~FakeDriver() {
  // A lost device does not release these.
  for (const auto& [pointer, block] : state_->memory) std::free(reinterpret_cast<void*>(pointer));
  g_state = nullptr;
}

void FakeDriver::fail_call(const std::string& member, int result, int nth, bool always) {
  const std::lock_guard guard(state_->mutex);
  if (result == 0) {
    state_->failures.erase(member);
  } else {
    state_->failures[member] = {result, nth, always};
  }
}

void FakeDriver::fail_from(int nth, int code) {
  const std::lock_guard guard(state_->mutex);
  state_->lost_from = nth;
  state_->lost_code = code;
}

bool FakeDriver::inside() { return t_inside > 0; }

int FakeDriver::calls(const std::string& member) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->calls.find(member);
  return found == state_->calls.end() ? 0 : found->second;
}

int FakeDriver::total_calls() const {
  const std::lock_guard guard(state_->mutex);
  return state_->total;
}

int FakeDriver::device_of(const void* address) const {
  const auto wanted = reinterpret_cast<DevicePointer>(address);
  const std::lock_guard guard(state_->mutex);
  const auto after = state_->memory.upper_bound(wanted);
  if (after == state_->memory.begin()) return -1;
  const auto& [begin, block] = *std::prev(after);
  return wanted - begin < block.first ? block.second : -1;
}

int FakeDriver::alive(const std::string& kind) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->alive.find(kind);
  return found == state_->alive.end() ? 0 : found->second;
}

DriverApi FakeDriver::api() const {
  return {.init = fake_init,
          .driver_version = fake_version,
          .error_name = fake_error_name,
          .error_string = fake_error_string,
          .device_count = fake_device_count,
          .device_get = fake_device_get,
          .device_name = fake_device_name,
          .device_attribute = fake_device_attribute,
          .device_memory = fake_device_memory,
          .context_retain = fake_context_retain,
          .context_set_current = fake_context_set_current,
          .context_synchronize = []() { return only("context_synchronize"); },
          .library_load = fake_library_load,
          .library_unload = fake_library_unload,
          .library_kernel = fake_library_kernel,
          .kernel_attribute = fake_kernel_attribute,
          .kernel_set_attribute = fake_kernel_set_attribute,
          .occupancy = fake_occupancy,
          .launch = fake_launch,
          .memory_info = fake_memory_info,
          .memory_allocate = fake_memory_allocate,
          .memory_free = fake_memory_free,
          .host_register = fake_host_register,
          .host_unregister = fake_host_unregister,
          .copy_to_device = fake_copy_to_device,
          .copy_to_host = fake_copy_to_host,
          .fill = fake_fill,
          .stream_create = fake_stream_create,
          .stream_destroy = fake_stream_destroy,
          .stream_synchronize = fake_stream_synchronize,
          .stream_query = [](StreamHandle) { return only("stream_query"); },
          .stream_add_callback = fake_stream_add_callback,
          .stream_wait_event = [](StreamHandle, EventHandle,
                                  unsigned) { return only("stream_wait_event"); },
          .event_create = fake_event_create,
          .event_destroy = fake_event_destroy,
          .event_record = [](EventHandle, StreamHandle) { return only("event_record"); },
          .event_synchronize = [](EventHandle) { return only("event_synchronize"); },
          .event_query = [](EventHandle) { return only("event_query"); },
          .event_elapsed = fake_event_elapsed};
}

}  // namespace hmmjit::tests
