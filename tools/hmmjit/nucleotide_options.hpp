// Options of the programs that search nucleotides, as HMMER's nhmmer and nhmmscan have them, and
// ours.
#pragma once

#include <span>

#include "nucleotide/search.hpp"
#include "option_table.hpp"
#include "search/options.hpp"

namespace hmmjit::tools {

std::span<const OptionSpec> nhmmer_option_table();
std::span<const OptionSpec> nhmmscan_option_table();

/// `search`: what make_search_options says. `scan`: of nhmmscan.
nucleotide::Options make_nucleotide_options(const ParsedOptions& options,
                                            const SearchOptions& search, bool scan);

}  // namespace hmmjit::tools
