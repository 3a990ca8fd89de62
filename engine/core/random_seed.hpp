#pragma once

#include <cstdint>

namespace hmmjit {

/// A seed that nobody chose, never 0. It is asked of the kernel, because std::random_device, where
/// it is linked statically, needs the newest C library.
std::uint32_t random_seed();

}  // namespace hmmjit
