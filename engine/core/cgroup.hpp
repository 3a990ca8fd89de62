// The limits of the control groups that this process belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hmmjit {

/// The paths under which the system shows control groups. Tests use other folders.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

/// Cores granted by the smallest CPU quota of the process's group and its ancestors, of version 2
/// (cpu.max) and version 1 (cpu.cfs_quota_us); 0 if there is none.
double cgroup_cores(const CgroupFiles& files = {});

/// Bytes that the memory limits of the same groups (memory.max and memory.high, or
/// memory.limit_in_bytes) still allow; droppable file cache counts as free. nullopt without a
/// limit.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

}  // namespace hmmjit
