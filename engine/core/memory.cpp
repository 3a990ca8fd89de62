#include "core/memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace hmmjit {

std::uint64_t available_memory(const MemoryFiles& files) {
  std::uint64_t available = std::uint64_t{1} << 30;
  std::ifstream info(files.machine);
  std::string key, unit;
  std::uint64_t kilobytes = 0;
  while (info >> key >> kilobytes) {
    if (key == "MemAvailable:") available = kilobytes * 1024;
    std::getline(info, unit);
  }
  if (const auto left = cgroup_memory_left(files.groups)) available = std::min(available, *left);
  return available;
}

Result<MemoryGrant> grant_memory(std::uint64_t wanted, int threads, const MemoryFiles& files) {
  // With this much left, searches of ordinary models were seen to end on one thread.
  constexpr std::uint64_t kLeast = std::uint64_t{20} << 20;
  MemoryGrant grant{wanted > 0 ? wanted : available_memory(files) / 2, threads,
                    cgroup_memory_left(files.groups)};
  if (!grant.group_left) return grant;
  const std::uint64_t left = *grant.group_left;
  if (left < kLeast) {
    return fail(ErrorCode::kResources,
                "the control group of this process has " + std::to_string(left >> 20) +
                    " MiB of memory left, and a search needs " + std::to_string(kLeast >> 20),
                {},
                "raise the memory limit of the job, container or control group, or end what else "
                "runs in it");
  }
  // A bound may be exceeded by a tenth and kProgramMemory.
  const std::uint64_t beyond = left - std::min(left, kProgramMemory);
  grant.bound = std::min(grant.bound, std::max(left / 2, beyond / 11 * 10));
  grant.threads =
      std::clamp(static_cast<int>(std::min<std::uint64_t>(beyond / kThreadMemory, 1 << 20)), 1,
                 std::max(threads, 1));
  return grant;
}

std::optional<std::uint64_t> matrix_that_fits(const CgroupFiles& files) {
  // What other threads may come to hold meanwhile.
  constexpr std::uint64_t kOfOthers = std::uint64_t{4} << 20;
  const auto left = cgroup_memory_left(files);
  if (!left) return std::nullopt;
  return (*left - std::min(*left, kOfOthers)) / 2;
}

std::uint64_t peak_resident_memory() {
  // Not getrusage: its figure begins with that of the process that started this one.
  std::ifstream status("/proc/self/status");
  std::string key;
  std::uint64_t kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::istringstream words(line); words >> key >> kilobytes && key == "VmHWM:")
      return kilobytes * 1024;
  }
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace hmmjit
