#pragma once

#include <cstdint>

namespace hmmjit {

/// An arbitrary seed, never 0. It comes from the kernel, because a statically linked
/// std::random_device needs the newest C library.
std::uint32_t random_seed();

}  // namespace hmmjit
