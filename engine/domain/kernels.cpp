#include "domain/kernels.hpp"

#include "domain/kernels_isa.hpp"

namespace hmmjit::domain {

std::vector<std::span<const Kernels>> kernel_sets() {
  std::vector<std::span<const Kernels>> sets;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.emplace_back(kKernelsAvx512);
  }
  if (__builtin_cpu_supports("avx2")) sets.emplace_back(kKernelsAvx2);
  sets.emplace_back(kKernelsSse2);
  return sets;
}

namespace {
const std::span<const Kernels> best_set() {
  static const std::span<const Kernels> best = kernel_sets().front();
  return best;
}
}  // namespace

const Kernels& kernels(int groups) {
  const Kernels* chosen = &best_set().front();
  for (const Kernels& k : best_set()) {
    if (k.groups <= groups) chosen = &k;
  }
  return *chosen;
}

int widest_groups() { return best_set().back().groups; }

}  // namespace hmmjit::domain
