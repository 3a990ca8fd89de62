// A model's SSV and MSV tables in the layout that filter kernels read, and the decisions they need
// for each target length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/launch_params.h"
#include "model/hmm.hpp"
#include "model/profile.hpp"

namespace hmmjit::layout {

/// Natural node order, [32][stride]; symbols without a row in the profile are impossible.
struct ByteTables {
  std::uint32_t stride = 0;            ///< M rounded up to 16
  std::vector<std::int8_t> emissions;  ///< SSV: -signed_cost; -127 impossible
  std::vector<std::uint8_t> costs;     ///< MSV: biased costs; 255 impossible
};
ByteTables make_byte_tables(const ByteProfile& profile);

/// One record per distinct target length: HMMER's decision and P-value arithmetic, inverted
/// over the byte score, since the bit score is a monotone function of it. Thread-safe. Takes about
/// 0.1 us per length if lengths are sorted.
std::vector<hmmjit_device::LengthClass> make_length_classes(const ByteProfile& profile,
                                                            const Calibration& calibration,
                                                            double F1,
                                                            std::span<const std::uint32_t> lengths);

}  // namespace hmmjit::layout
