// Shared by the tests of all stages' kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/launch_params.h"
#include "layout/packed_targets.hpp"
#include "lockstep/catalogue.hpp"
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

inline const hmmjit_lockstep::KernelInstance& instance(std::size_t index) {
  return hmmjit_lockstep::kernel_instances()[index];
}
inline std::string instance_name(const testing::TestParamInfo<std::size_t>& info) {
  return instance(info.param).name;
}

/// Model lengths that fit: full, one less, much less, tiny; several tiles if tiled.
inline std::vector<int> lengths_of(const hmmjit_lockstep::KernelInstance& kernel) {
  const int full = hmmjit_lockstep::covered_by_entry(kernel);
  std::set<int> out{full, std::max(1, full - 1), std::max(1, full / 2 + 1), 1};
  if (hmmjit_lockstep::tile_length_by_entry(kernel) > 0)
    out.insert({full + 1, 2 * full, 3 * full - 2});
  return {out.begin(), out.end()};
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
