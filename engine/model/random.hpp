// HMMER's fast random number generator. Its exact sequence determines sampled traces and
// calibrations.
#pragma once

#include <cstdint>

namespace hmmjit {

/// 32-bit linear congruential generator x' = 69069 x + 1 (Marsaglia's multiplier), seeded through
/// Jenkins' 96-bit mix (Dr. Dobb's Journal, 1997) so that similar seeds start far apart. Value
/// type: copies continue independently. One thread at a time.
class LinearCongruential {
 public:
  explicit LinearCongruential(std::uint32_t seed) { reseed(seed); }

  void reseed(std::uint32_t seed) {
    state_ = mix(seed, 87654321u, 12345678u);
    if (state_ == 0) state_ = 42;
  }
  std::uint32_t state() const { return state_; }

  /// Uniform deviate in [0, 1): the next state / 2^32.
  double uniform() {
    state_ = 69069u * state_ + 1u;
    return static_cast<double>(state_) * 0x1p-32;
  }

 private:
  static std::uint32_t mix(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    a = (a - b - c) ^ (c >> 13);
    b = (b - c - a) ^ (a << 8);
    c = (c - a - b) ^ (b >> 13);
    a = (a - b - c) ^ (c >> 12);
    b = (b - c - a) ^ (a << 16);
    c = (c - a - b) ^ (b >> 5);
    a = (a - b - c) ^ (c >> 3);
    b = (b - c - a) ^ (a << 10);
    c = (c - a - b) ^ (b >> 15);
    return c;
  }

  std::uint32_t state_ = 0;
};

}  // namespace hmmjit
