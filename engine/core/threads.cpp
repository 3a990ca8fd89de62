#include "core/threads.hpp"

#include <sched.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/cgroup.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit {
namespace {

// Threads of this process now; 0 where that cannot be read.
int thread_count() {
  constexpr std::string_view kLine = "\nThreads:";
  const std::string status = read_kernel_file("/proc/self/status");
  const std::size_t at = status.find(kLine);
  return at == status.npos ? 0 : std::atoi(status.c_str() + at + kLine.size());
}

}  // namespace

void lower_thread_priority(int steps) {
  // Of the calling thread alone: threads have priorities of their own on Linux.
  [[maybe_unused]] const int priority = ::nice(steps);
}

int startable_threads(int wanted) {
  static std::atomic<int> proven{0};
  if (wanted <= proven) return std::max(0, wanted);
  const int before = thread_count();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(wanted));
  std::atomic<bool> enough{false};
  try {
    while (static_cast<int>(threads.size()) < wanted)
      threads.emplace_back([&enough] { enough.wait(false); });
  } catch (const std::system_error&) {  // no more are to be had
  } catch (const std::bad_alloc&) {
  }
  enough = true;
  enough.notify_all();
  for (std::thread& thread : threads) thread.join();
  // A thread still counts against the limits for a moment after it was joined.
  for (int i = 0; i < 200 && thread_count() > before; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  const int started = static_cast<int>(threads.size());
  for (int known = proven; known < started && !proven.compare_exchange_weak(known, started);) {
  }
  return started;
}

std::thread thread_until_out_of_memory(std::function<void()> work,
                                       std::function<void()> out_of_memory) {
  return std::thread([work = std::move(work), out_of_memory = std::move(out_of_memory)] {
    try {
      work();
    } catch (const std::bad_alloc&) {
      if (out_of_memory) out_of_memory();
    }
  });
}

void reach_ahead_in_heap([[maybe_unused]] std::size_t bytes) {
#ifdef __GLIBC__
  // What was accessible once stays so when it is given back. Larger blocks would become mappings
  // of their own.
  constexpr std::size_t kBlock = std::size_t{120} << 10;
  struct Block {
    Block* before;
  };
  Block* last = nullptr;
  for (std::size_t reached = 0; reached < bytes; reached += kBlock) {
    auto* const block = static_cast<Block*>(std::malloc(kBlock));
    if (block == nullptr) break;
    block->before = last;
    last = block;
  }
  while (last != nullptr) std::free(std::exchange(last, last->before));
#endif
}

void open_unwinder() {
#ifdef __GLIBC__
  void* frame = nullptr;
  ::backtrace(&frame, 1);
#endif
}

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int available_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  const double quota = cgroup_cores();
  if (quota > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota))));
  return cores;
}

}  // namespace hmmjit
