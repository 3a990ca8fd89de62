// Runs CUDA kernels on the host, for tests: the threads of a block are fibers, switched at every
// warp-wide or block-wide operation, so that shuffles, votes and barriers involve exactly the lanes
// they would on a device. The host compiler compiles the kernel source with HMMJIT_LOCKSTEP, which
// makes kernel_templates/common/intrinsics.cuh use this file.
//
// Stricter than a device: launch throws std::logic_error if a collective is reached by only some of
// the lanes in its mask, if they meet different collectives, or if a kernel writes past its dynamic
// shared memory. Blocks run one after another, so atomics are plain.
//
// Include this header before the kernel source, in one translation unit per kernel instance. Some
// hundred of them are compiled: it includes no header that takes long to parse.
#pragma once

#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

namespace hmmjit_lockstep {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

/// Of the running thread, for which they do not change.
[[gnu::const]] unsigned thread_index();
[[gnu::const]] unsigned block_threads();
[[gnu::const]] unsigned block_index();
[[gnu::const]] unsigned grid_blocks();
[[gnu::const]] unsigned lane();
[[gnu::const]] unsigned char* dynamic_shared();

/// `mask`: the participating lanes.
std::uint32_t shuffle(std::uint32_t value, std::uint32_t from, std::uint32_t mask = ~0u);
std::uint32_t ballot(bool predicate, std::uint32_t mask = ~0u);
void sync_warp(std::uint32_t mask = ~0u);
void sync_block();

/// Runs `kernel` for every thread of `blocks` blocks. One launch at a time per host thread.
void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes,
            void (*kernel)(const void*), const void* of_kernel);
template <typename Kernel>
void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes, const Kernel& kernel) {
  launch(
      blocks, threads, shared_bytes,
      [](const void* of_kernel) { (*static_cast<const Kernel*>(of_kernel))(); }, &kernel);
}

/// A kernel instance of the program (registry.hpp): a template with one list of constants.
struct Constant {
  const char* name;
  std::int64_t value;
};
struct Registration {
  template <std::size_t kCount>
  Registration(const char* name, const char* kernel, const Constant (&constants)[kCount],
               void (*run)(const void*))
      : Registration(name, kernel, constants, kCount, run) {}
  Registration(const char* name, const char* kernel, const Constant* constants, std::size_t count,
               void (*run)(const void*));
};

// ---- half precision, bit-exact, through float (which holds every half exactly) ----

inline float half_to_float(std::uint16_t h) {
  const std::uint32_t exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa ? __builtin_nanf("") : __builtin_inff();
  } else if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  } else {
    magnitude =
        __builtin_ldexpf(static_cast<float>(1024 + mantissa), static_cast<int>(exponent) - 25);
  }
  return (h & 0x8000u) ? -magnitude : magnitude;
}

/// Non-negative finite values and infinity; rounds to nearest even.
inline std::uint16_t positive_float_to_half(float f) {
  if (f >= 65520.0f) return 0x7c00;
  int exponent = 0;
  if (f >= 0x1p-14f) {
    __builtin_frexpf(f, &exponent);
    exponent -= 1;  // f = 1.x * 2^exponent
  } else {
    exponent = -14;
  }
  const float units = __builtin_rintf(__builtin_ldexpf(f, 10 - exponent));  // of the last place
  auto bits = static_cast<std::uint32_t>(units);
  if (f >= 0x1p-14f) bits += static_cast<std::uint32_t>(exponent + 14) << 10;  // 1024 carries in
  return static_cast<std::uint16_t>(bits);
}

/// max(a + b, +0), as fma.rn.relu.f16 with a multiplier of one; NaN becomes NaN (0x7fff).
inline std::uint16_t add_relu_half(std::uint16_t a, std::uint16_t b) {
  const float sum = half_to_float(a) + half_to_float(b);  // exact: 11-bit operands, 30 binades...
  if (sum != sum) return 0x7fff;
  return sum > 0 ? positive_float_to_half(sum) : std::uint16_t{0};
}

}  // namespace hmmjit_lockstep

#define threadIdx (hmmjit_lockstep::Index{hmmjit_lockstep::thread_index(), 0, 0})
#define blockIdx (hmmjit_lockstep::Index{hmmjit_lockstep::block_index(), 0, 0})
#define blockDim (hmmjit_lockstep::Index{hmmjit_lockstep::block_threads(), 1, 1})
#define gridDim (hmmjit_lockstep::Index{hmmjit_lockstep::grid_blocks(), 1, 1})
