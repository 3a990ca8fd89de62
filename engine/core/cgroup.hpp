// What the control groups this process is in grant it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hmmjit {

/// Where the kernel shows control groups. Tests name folders of their own.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

/// Cores by the tightest CPU quota of the process's group and the groups above it, of version 2
/// (cpu.max) and version 1 (cpu.cfs_quota_us); 0 when there is none.
double cgroup_cores(const CgroupFiles& files = {});

/// Bytes that may still be allocated by the memory limits of the same groups (memory.max and
/// memory.high, or memory.limit_in_bytes), file cache that can be dropped counted as free; nullopt
/// when there is no limit.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

}  // namespace hmmjit
