#include "compile/pool_size.hpp"

#include <algorithm>

namespace hmmjit::compile {

int compile_threads(int wanted, int cores, std::uint64_t memory) {
  constexpr int kMost = 12;  // for all kernels of a search, which one of them takes as long as
  // Measured with NVRTC 13.0 on the catalogue's kernels: 91 MB once, 19 MB for each compile that
  // runs; held here twice, for larger kernels and other versions.
  constexpr std::uint64_t kOnce = std::uint64_t{182} << 20, kEach = std::uint64_t{38} << 20;
  if (wanted > 0) return wanted;
  int threads = std::min(cores, kMost);
  if (memory < kOnce + static_cast<std::uint64_t>(kMost) * kEach) {
    const std::uint64_t rest = memory - std::min(memory, kOnce);
    threads = std::min(threads, static_cast<int>(rest / kEach));
  }
  return std::max(threads, 1);
}

}  // namespace hmmjit::compile
