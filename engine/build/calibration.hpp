// Estimates the score distributions of a model from simulated targets.
#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "model/hmm.hpp"

namespace hmmjit::build {

/// Number and length of the targets simulated for each distribution; defaults are HMMER's.
struct CalibrationOptions {
  int msv_length = 200, msv_targets = 200;
  int viterbi_length = 200, viterbi_targets = 200;
  int forward_length = 100, forward_targets = 200;
  double tail_mass = 0.04;  ///< upper tail in which Forward scores are exponential
  std::uint32_t seed = 42;  ///< for the targets; every model sees the same ones
  bool operator==(const CalibrationOptions&) const = default;
};

/// Scores simulated targets and fits the location of the MSV, Viterbi (Gumbel) and Forward
/// (exponential tail) score distributions; lambda follows from the model's relative entropy
/// (Eddy 2008). Bit-identical to HMMER 3.4. Fails with kUsage for fewer than two targets, and with
/// kInput if no Gumbel distribution fits the Forward scores. Thread-safe. Cost with the defaults:
/// 40 000 rows of each integer filter and 20 000 of Forward.
Result<Calibration> calibrate(const Hmm& hmm, const CalibrationOptions& options = {});
/// Calibrates a model without score statistics (imported or just built). Fails as calibrate().
Status calibrate_if_needed(Hmm& hmm, const CalibrationOptions& options = {});

}  // namespace hmmjit::build
