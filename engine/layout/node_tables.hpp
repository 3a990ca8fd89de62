// The scores of a model's nodes in the layout that filter kernels read
// (kernel_templates/common/late_params.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/late_params.h"
#include "model/profile.hpp"

namespace hmmjit::layout {

/// Natural node order, scores as in the profile; impossible beyond M and for symbols without a row
/// there.
template <typename Score>
struct NodeTables {
  std::uint32_t stride = 0;        ///< M rounded up to 16
  std::vector<Score> emissions;    ///< [32][stride]
  std::vector<Score> transitions;  ///< [hmmjit_device::kWordTransitions][stride]
};

template <typename Score>
std::array<const std::vector<Score>*, hmmjit_device::kWordTransitions> transition_rows(
    const NodeScores<Score>& profile) {
  std::array<const std::vector<Score>*, hmmjit_device::kWordTransitions> rows{};
  rows[hmmjit_device::kWordEntry] = &profile.entry;
  rows[hmmjit_device::kWordMmIn] = &profile.mm_in;
  rows[hmmjit_device::kWordImIn] = &profile.im_in;
  rows[hmmjit_device::kWordDmIn] = &profile.dm_in;
  rows[hmmjit_device::kWordMdOut] = &profile.md_out;
  rows[hmmjit_device::kWordMiOut] = &profile.mi_out;
  rows[hmmjit_device::kWordIiOut] = &profile.ii_out;
  rows[hmmjit_device::kWordDdOut] = &profile.dd_out;
  return rows;
}

/// Makes only the transitions; `emissions` stays empty.
template <typename Score>
NodeTables<Score> make_node_transitions(const NodeScores<Score>& profile, Score impossible) {
  NodeTables<Score> out;
  const auto M = static_cast<std::size_t>(profile.M);
  out.stride = static_cast<std::uint32_t>((M + 15) / 16 * 16);
  out.transitions.assign(std::size_t{hmmjit_device::kWordTransitions} * out.stride, impossible);
  auto to = out.transitions.begin();
  for (const auto* row : transition_rows(profile)) {
    std::copy_n(row->begin(), M, to);
    to += out.stride;
  }
  return out;
}

template <typename Score>
NodeTables<Score> make_node_tables(const NodeScores<Score>& profile, Score impossible) {
  NodeTables<Score> out = make_node_transitions(profile, impossible);
  out.emissions.assign(std::size_t{hmmjit_device::kSymbolRows} * out.stride, impossible);
  for (int x = 0; x < profile.Kp; ++x) {
    std::copy_n(profile.match.begin() + static_cast<std::ptrdiff_t>(x) * profile.M, profile.M,
                out.emissions.begin() + static_cast<std::ptrdiff_t>(x) * out.stride);
  }
  return out;
}

}  // namespace hmmjit::layout
