// The limits of the control groups that this process belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hmmjit {

/// Where the kernel shows control groups. Tests use folders of their own.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

/// Cores by the smallest CPU quota of the process's group and the groups above it, of version 2
/// (cpu.max) and version 1 (cpu.cfs_quota_us); 0 when there is none.
double cgroup_cores(const CgroupFiles& files = {});

/// Bytes that the memory limits of the same groups (memory.max and memory.high, or
/// memory.limit_in_bytes) still allow; file cache that can be dropped counts as free. nullopt when
/// there is no limit.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

}  // namespace hmmjit
