// How many compiles may run at a time on this machine.
#pragma once

#include <cstdint>
#include <string>

namespace hmmjit::compile {

/// Bytes this process may still take without swapping or being killed: MemAvailable (proc(5)),
/// which counts what the page cache gives back, and what every control group above leaves. `root`
/// is the folder the files of /proc and /sys are looked for in; ~0 where nothing is known.
std::uint64_t available_memory(const std::string& root = "/");

/// Threads for compiles: `wanted` if positive, else as many as cores, at most 8, and as memory
/// holds.
int compile_threads(int wanted, int cores, std::uint64_t memory);

}  // namespace hmmjit::compile
