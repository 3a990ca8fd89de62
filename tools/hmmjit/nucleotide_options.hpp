// Options of the nucleotide programs: those of HMMER's nhmmer and nhmmscan, and ours.
#pragma once

#include <span>

#include "nucleotide/search.hpp"
#include "option_table.hpp"
#include "search/options.hpp"

namespace hmmjit::tools {

std::span<const OptionSpec> nhmmer_option_table();
std::span<const OptionSpec> nhmmscan_option_table();

/// `search`: from make_search_options(). `scan`: for nhmmscan.
nucleotide::Options make_nucleotide_options(const ParsedOptions& options,
                                            const SearchOptions& search, bool scan);

}  // namespace hmmjit::tools
