// How many compiles may run at a time on this machine.
#pragma once

#include <cstdint>

namespace hmmjit::compile {

/// Threads for compiles: `wanted` if positive, else as many as cores, at most 12, and as `memory`
/// (bytes, see available_memory) holds.
int compile_threads(int wanted, int cores, std::uint64_t memory);

}  // namespace hmmjit::compile
