// How much memory this process may use and has used.
#pragma once

#include <cstdint>

namespace hmmjit {

/// Bytes that could be allocated now: what the machine has free, or what the cgroup still
/// grants, whichever is less. 1 GiB when neither can be read.
std::uint64_t available_memory();

/// Largest resident size of this process so far, in bytes.
std::uint64_t peak_resident_memory();

}  // namespace hmmjit
