// Options of model building from alignments, which `hmmjit build` and `hmmjit jackhmmer` share.
#pragma once

#include <span>

#include "build/alignment_model.hpp"
#include "option_table.hpp"

namespace hmmjit::tools {

/// --fragthresh; --wpb to --wid; --eent to --eid; --pnone and --plaplace, in HMMER's order.
std::span<const OptionSpec> fragment_option();
std::span<const OptionSpec> weighting_options();
std::span<const OptionSpec> effective_number_options();
std::span<const OptionSpec> prior_options();

/// The values of these options. Fails with kUsage if a value makes no sense.
Result<build::AlignmentOptions> make_alignment_options(const ParsedOptions& options);

}  // namespace hmmjit::tools
