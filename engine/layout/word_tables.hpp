// A model's Viterbi tables in the layout that filter kernels read
// (kernel_templates/common/late_params.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/late_params.h"
#include "model/profile.hpp"

namespace hmmjit::layout {

/// Natural node order, words as in the profile; -32768 beyond M and for symbols without a row.
struct WordTables {
  std::uint32_t stride = 0;               ///< M rounded up to 16
  std::vector<std::int16_t> emissions;    ///< [32][stride]
  std::vector<std::int16_t> transitions;  ///< [hmmjit_device::kWordTransitions][stride]
};
WordTables make_word_tables(const WordProfile& profile);

/// N/C/J -> B words for target lengths.
std::vector<std::int16_t> make_word_moves(const WordProfile& profile,
                                          std::span<const std::uint32_t> lengths);

/// Empty if the wavefront kernel's arithmetic is exact for this model (see late_params.h), else the
/// reason why not; such a model runs the row-by-row kernel.
std::string viterbi_wavefront_gap(const WordProfile& profile);
/// The same for the row-by-row kernel; such a model runs the CPU filter.
std::string viterbi_row_scan_gap(const WordProfile& profile);

}  // namespace hmmjit::layout
