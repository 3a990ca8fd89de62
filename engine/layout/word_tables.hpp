// What Viterbi kernels need besides a model's tables (layout/node_tables.hpp), and whether they can
// compute with these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::layout {

/// N/C/J -> B words for target lengths.
std::vector<std::int16_t> make_word_moves(const WordProfile& profile,
                                          std::span<const std::uint32_t> lengths);

/// Empty if the wavefront kernel's arithmetic is exact for this model (see late_params.h), else the
/// reason why not; such a model runs the row-by-row kernel.
std::string viterbi_wavefront_gap(const WordProfile& profile);
/// The same for the row-by-row kernel; such a model runs the CPU filter.
std::string viterbi_row_scan_gap(const WordProfile& profile);

}  // namespace hmmjit::layout
