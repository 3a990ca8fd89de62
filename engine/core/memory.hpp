// How much memory this process may use and has used.
#pragma once

#include <cstdint>
#include <string>

#include "core/cgroup.hpp"

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

/// Largest resident size of this process so far, in bytes.
std::uint64_t peak_resident_memory();

}  // namespace hmmjit
