// Options of programs that build models or search with sequences.
#pragma once

#include <span>

#include "build/alignment_model.hpp"
#include "build/calibration.hpp"
#include "build/score_system.hpp"
#include "option_table.hpp"

namespace hmmjit::tools {

/// The options of each program, in HMMER's order, then ours.
std::span<const OptionSpec> phmmer_option_table();
std::span<const OptionSpec> jackhmmer_option_table();
std::span<const OptionSpec> scan_option_table();

/// --EmL to --Eft.
std::span<const OptionSpec> calibration_options();
/// --fragthresh; --wpb to --wid; --eent to --eid; --pnone and --plaplace, in HMMER's order.
std::span<const OptionSpec> alignment_options();

/// --mx or --mxfile, --popen, --pextend; the alphabet determines the defaults. Fails with kUsage or
/// kInput.
Result<build::ScoreSystem> make_score_system(const ParsedOptions& options,
                                             const Alphabet& alphabet = amino_alphabet());
build::AlignmentOptions make_alignment_options(const ParsedOptions& options);
/// --EmL to --Eft, and --seed; `arbitrary`: the seed for --seed 0.
build::CalibrationOptions make_calibration_options(const ParsedOptions& options,
                                                   std::uint32_t arbitrary);

}  // namespace hmmjit::tools
