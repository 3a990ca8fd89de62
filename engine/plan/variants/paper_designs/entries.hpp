// Designs of earlier papers, kept for comparison with their reported results and chosen only by
// name. Each stage appends its designs to its table, see plan/variants/<stage>.cpp.
#pragma once

#include <span>
#include <vector>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan::paper {

std::span<const KernelVariant> ssv_entries();
std::span<const KernelVariant> msv_entries();
std::span<const KernelVariant> viterbi_entries();

/// Concatenates tables.
inline std::vector<KernelVariant> joined(
    std::initializer_list<std::span<const KernelVariant>> tables) {
  std::vector<KernelVariant> out;
  for (const auto& table : tables) out.insert(out.end(), table.begin(), table.end());
  return out;
}

}  // namespace hmmjit::plan::paper
