// Shared by the tests of all stages' kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/launch_params.h"
#include "layout/packed_targets.hpp"
#include "lockstep/registry.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit {

/// Instances of the kernels of one stage, in order of registration.
inline std::vector<std::size_t> instances_of(const std::string& stage) {
  std::vector<std::size_t> out;
  const auto& all = hmmjit_lockstep::kernel_instances();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kernel.starts_with(stage)) out.push_back(i);
  }
  return out;
}

/// Targets of every kind.
inline std::vector<std::vector<Residue>> mixed_targets(std::uint64_t seed, const Hmm& hmm,
                                                       int count, int longest) {
  test_support::Random random(seed);
  std::vector<std::vector<Residue>> out;
  for (int i = 0; i < count; ++i) {
    const auto kind = test_support::kAllTargetKinds[static_cast<std::size_t>(i) % 6];
    out.push_back(test_support::random_target(random, {1, longest}, kind, hmm));
  }
  return out;
}

/// Targets in host memory, in the view of a kernel.
inline hmmjit_device::DatabaseView view(const layout::PackedTargets& targets) {
  return {targets.residues.data(),
          targets.start.data(),
          targets.length.data(),
          targets.length_class.data(),
          static_cast<std::uint32_t>(targets.size()),
          {}};
}

}  // namespace hmmjit
