// The memory that this process may use and has used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/cgroup.hpp"
#include "core/error.hpp"

namespace hmmjit {

/// The files in which the kernel reports free memory. Tests use other files.
struct MemoryFiles {
  std::string machine = "/proc/meminfo";
  CgroupFiles groups;
};

/// Bytes that can be allocated now without swapping or being killed: the smaller of the machine's
/// free memory (MemAvailable of proc(5), including the page cache that can be dropped; 1 GiB if
/// unknown) and the limits of the control groups.
std::uint64_t available_memory(const MemoryFiles& files = {});

/// Memory of the program itself (code, buffers of readers and writers) and of each of its threads
/// (rows and matrices of the vector code), in bytes.
inline constexpr std::uint64_t kProgramMemory = std::uint64_t{24} << 20;
inline constexpr std::uint64_t kThreadMemory = std::uint64_t{8} << 20;

struct MemoryGrant {
  std::uint64_t bound;  ///< for the resident size, in bytes
  int threads;
  std::uint64_t available;  ///< available_memory() at the time of the grant
  /// Bytes left by the control groups at the time of the grant; nullopt without a limit.
  std::optional<std::uint64_t> group_left;
};

/// The memory bound and number of threads for a search that requests `wanted` bytes (0: half of the
/// available memory) and `threads` threads. A control group kills a process that exceeds its memory
/// limit. The bound is therefore the memory left to the group, minus the amount by which a search
/// may exceed its bound, and the threads are limited to those that fit. Fails with kResources if
/// the group has less left than a search on one thread needs.
Result<MemoryGrant> grant_memory(std::uint64_t wanted, int threads, const MemoryFiles& files = {});

/// Bytes that each of two matrices may take now within the control groups' limits; nullopt if there
/// is no limit.
std::optional<std::uint64_t> matrix_that_fits(const CgroupFiles& files = {});

/// Largest resident size of this process so far, in bytes.
std::uint64_t peak_resident_memory();

}  // namespace hmmjit
