// Converts the public options of model building to the internals'.
#pragma once

#include <functional>

#include "api/convert.hpp"
#include "build/alignment_model.hpp"
#include "build/calibration.hpp"
#include "build/score_system.hpp"
#include "hmmjit/build.hpp"
#include "model/residue_copies.hpp"
#include "model/targets.hpp"

namespace hmmjit::v0 {

/// Throws kUsage for invalid options.
void check_options(const hmmjit_build_options& options);
build::AlignmentOptions to_alignment_options(const hmmjit_build_options& options);
build::CalibrationOptions to_calibration(const hmmjit_build_options& options);
build::ScoreSystem to_score_system(const hmmjit_build_options& options,
                                   const hmmjit::Alphabet& alphabet);

/// Calls `use` with every sequence that has residues; `sequence` is valid until `use` returns.
void for_each_query(const Targets& sequences, const hmmjit::Alphabet& alphabet,
                    const std::function<void(const TargetView& sequence)>& use);

}  // namespace hmmjit::v0
