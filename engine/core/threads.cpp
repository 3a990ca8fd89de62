#include "core/threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cgroup.hpp"

namespace hmmjit {
void lower_thread_priority(int steps) {
  // On Linux this affects the calling thread only.
  [[maybe_unused]] const int priority = ::nice(steps);
}

bool can_start_threads(int count) {
  std::atomic<bool> release{false};
  std::vector<std::jthread> threads;
  try {
    while (static_cast<int>(threads.size()) < count)
      threads.emplace_back([&release] { release.wait(false); });
  } catch (const std::exception&) {  // no further thread can be started, or no memory for it
  }
  release = true;
  release.notify_all();
  return static_cast<int>(threads.size()) >= count;
}

std::thread thread_until_out_of_memory(const char* name, std::function<void()> work,
                                       std::function<void()> out_of_memory) {
  return std::thread([name, work = std::move(work), out_of_memory = std::move(out_of_memory)] {
    ::pthread_setname_np(::pthread_self(), name);
    try {
      work();
    } catch (const std::bad_alloc&) {
      out_of_memory();
    }
  });
}

Error refused_threads(std::string_view threads, const std::system_error& refusal) {
  return {ErrorCode::kResources,
          std::string(threads) + " cannot be started: " + refusal.what(),
          {},
          "raise the limit on processes (ulimit -u)"};
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
