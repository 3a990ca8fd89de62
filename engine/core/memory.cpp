#include "core/memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "core/read_only_file.hpp"

namespace hmmjit {
namespace {

std::uint64_t available_memory(const MemoryFiles& files, std::optional<std::uint64_t> group_left) {
  std::uint64_t available = std::uint64_t{1} << 30;
  if (const auto kilobytes = value_in_kernel_file(files.machine, "MemAvailable:"))
    available = *kilobytes * 1024;
  return group_left ? std::min(available, *group_left) : available;
}

}  // namespace

std::uint64_t available_memory(const MemoryFiles& files) {
  return available_memory(files, cgroup_memory_left(files.groups));
}

Result<MemoryGrant> grant_memory(std::uint64_t wanted, int threads, const MemoryFiles& files) {
  // Measured: enough for a search with ordinary models on one thread.
  constexpr std::uint64_t kLeast = std::uint64_t{20} << 20;
  const auto group_left = cgroup_memory_left(files.groups);
  const std::uint64_t available = available_memory(files, group_left);
  MemoryGrant grant{wanted > 0 ? wanted : available / 2, threads, available, group_left};
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
  // A search may exceed its bound by a tenth plus kProgramMemory.
  const std::uint64_t beyond = left - std::min(left, kProgramMemory);
  grant.bound = std::min(grant.bound, std::max(left / 2, beyond / 11 * 10));
  grant.threads =
      std::clamp(static_cast<int>(std::min<std::uint64_t>(beyond / kThreadMemory, 1 << 20)), 1,
                 std::max(threads, 1));
  return grant;
}

std::optional<std::uint64_t> matrix_that_fits(const CgroupFiles& files) {
  // Memory that other threads may allocate meanwhile.
  constexpr std::uint64_t kOfOthers = std::uint64_t{4} << 20;
  const auto left = cgroup_memory_left(files);
  if (!left) return std::nullopt;
  return (*left - std::min(*left, kOfOthers)) / 2;
}

std::uint64_t peak_resident_memory() {
  // getrusage would include the maximum of the process that started this one.
  if (const auto kilobytes = value_in_kernel_file("/proc/self/status", "VmHWM:"))
    return *kilobytes * 1024;
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace hmmjit
