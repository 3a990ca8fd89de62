// How much memory this process may use and has used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/cgroup.hpp"
#include "core/error.hpp"

namespace hmmjit {

/// Where the kernel says what memory is free. Tests name folders of their own.
struct MemoryFiles {
  std::string machine = "/proc/meminfo";
  CgroupFiles groups;
};

/// Bytes that could be allocated now without swapping or being killed: what the machine has free
/// (MemAvailable of proc(5), which counts the page cache that can be dropped) or what the control
/// groups still grant, whichever is less. Where the machine does not say, 1 GiB stands for it.
std::uint64_t available_memory(const MemoryFiles& files = {});

/// What a program of this engine holds whatever its input: code, buffers of readers and writers;
/// and what each of its threads holds: rows, and the matrices of its vectors. In bytes.
inline constexpr std::uint64_t kProgramMemory = std::uint64_t{24} << 20;
inline constexpr std::uint64_t kThreadMemory = std::uint64_t{8} << 20;

/// Whether dlopen(3), which says so by words alone (dlerror(3)), failed for want of memory.
bool is_want_of_memory(std::string_view dlerror_words);

struct MemoryGrant {
  std::uint64_t bound;  ///< of the resident size, in bytes
  int threads;
  std::uint64_t available;  ///< available_memory() when this was made
  /// What the control groups left when this was made, in bytes; nullopt without a limit.
  std::optional<std::uint64_t> group_left;
};

/// The bound on memory and the threads of a search that asks for `wanted` bytes (0: half of what is
/// available) and `threads` threads. A control group with a memory limit does not refuse memory
/// beyond it, but ends the process, so that there the bound is what the group has left, less what
/// the bound may be exceeded by, and no more threads run than fit. kResources where the group has
/// not left what one thread needs.
Result<MemoryGrant> grant_memory(std::uint64_t wanted, int threads, const MemoryFiles& files = {});

/// Bytes that one matrix may have now so that it and a second one beside it fit into what the
/// control groups have left; nullopt without a limit.
std::optional<std::uint64_t> matrix_that_fits(const CgroupFiles& files = {});

/// Largest resident size of this process so far, in bytes.
std::uint64_t peak_resident_memory();

}  // namespace hmmjit
