#include "core/random_seed.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

namespace hmmjit {

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) {  // a kernel or sandbox without it
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    seed = static_cast<std::uint32_t>(now ^ (now >> 32)) ^ static_cast<std::uint32_t>(::getpid())
                                                               << 8;
  }
  return seed | 1U;
}

}  // namespace hmmjit
