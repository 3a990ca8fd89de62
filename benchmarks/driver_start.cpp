// What the CUDA driver takes to start and to lock pages, in milliseconds, beside threads that
// compute:
//
//   driver_start [--threads N] [--nice N] [--hold SECONDS]
//
// N threads (0) compute at nice N (5) meanwhile; afterwards the device is held for so long (0),
// which lets other processes see what it takes on a device that is in use.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "core/threads.hpp"

namespace {

// A call's milliseconds; ends the program when it fails.
template <typename Call>
double timed(const char* name, Call call) {
  const auto begun = std::chrono::steady_clock::now();
  const int result = call();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begun;
  if (result != 0) {
    fmt::print(stderr, "driver_start: {} failed with error {}\n", name, result);
    std::exit(4);
  }
  return taken.count();
}

template <typename Function>
Function* symbol(void* library, const char* name) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) {
    fmt::print(stderr, "driver_start: the driver has no {}\n", name);
    std::exit(4);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0, steps = 5, hold = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    int* const value = option == "--threads" ? &threads
                       : option == "--nice"  ? &steps
                       : option == "--hold"  ? &hold
                                             : nullptr;
    if (value == nullptr || i + 1 == argc) {
      fmt::print(stderr, "usage: driver_start [--threads N] [--nice N] [--hold SECONDS]\n");
      return 2;
    }
    *value = std::atoi(argv[i + 1]);
  }

  void* library = nullptr;
  const double loaded = timed("dlopen", [&] {
    library = ::dlopen("libcuda.so.1", RTLD_NOW);
    return 0;
  });
  if (library == nullptr) {
    fmt::print(stderr, "driver_start: no CUDA driver: {}\n", ::dlerror());
    return 4;
  }
  const auto init = symbol<int(unsigned)>(library, "cuInit");
  const auto device_get = symbol<int(int*, int)>(library, "cuDeviceGet");
  const auto retain = symbol<int(void**, int)>(library, "cuDevicePrimaryCtxRetain");
  const auto use = symbol<int(void*)>(library, "cuCtxSetCurrent");
  const auto allocate = symbol<int(void**, std::size_t, unsigned)>(library, "cuMemHostAlloc");
  const auto lock = symbol<int(void*, std::size_t, unsigned)>(library, "cuMemHostRegister_v2");

  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < threads; ++i) {
    busy.emplace_back([&] {
      hmmjit::lower_thread_priority(steps);
      for (volatile unsigned value = 1; !done;) value = value * 1664525u + 1013904223u;
    });
  }

  const double initialised = timed("cuInit", [&] { return init(0); });
  int device = 0;
  void* context = nullptr;
  timed("cuDeviceGet", [&] { return device_get(&device, 0); });
  const double made = timed("cuDevicePrimaryCtxRetain", [&] { return retain(&context, device); });
  timed("cuCtxSetCurrent", [&] { return use(context); });
  fmt::print("driver loaded {:.1f}, cuInit {:.1f}, context {:.1f}\n", loaded, initialised, made);

  constexpr std::size_t kBytes = std::size_t{4} << 20;
  for (int i = 0; i < 3; ++i) {
    void* data = nullptr;
    const double allocated = timed("cuMemHostAlloc", [&] { return allocate(&data, kBytes, 0); });
    const double present = timed("mmap", [&] {
      data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      return data == MAP_FAILED ? 1 : 0;
    });
    const double locked = timed("cuMemHostRegister", [&] { return lock(data, kBytes, 0); });
    fmt::print("4 MB: cuMemHostAlloc {:.2f}; present {:.2f}, then cuMemHostRegister {:.2f}\n",
               allocated, present, locked);
  }
  done = true;
  for (std::thread& thread : busy) thread.join();
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(hold));
  std::_Exit(0);
}
