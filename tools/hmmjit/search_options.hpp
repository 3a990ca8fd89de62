// The options of `hmmjit search`: hmmsearch's and ours.
#pragma once

#include <span>

#include "option_table.hpp"
#include "parts/part_format.hpp"
#include "report/main_report.hpp"
#include "search/device_choice.hpp"
#include "search/options.hpp"

namespace hmmjit::tools {

/// In hmmsearch's order, which reports repeat; ours last.
std::span<const OptionSpec> search_option_table();

/// Fails with kUsage for invalid values.
Result<SearchOptions> make_search_options(const ParsedOptions& options);

/// --device and --vram. Fails with kUsage for invalid values.
Result<DeviceChoice> make_device_choice(const ParsedOptions& options);

/// The number in "gpu" or "gpu:1". `option`: for errors.
Result<int> gpu_ordinal(std::string_view name, const char* option);

/// The share of --slice; 1/1 without it.
Result<parts::Share> slice_of(const ParsedOptions& options);
ReportOptions make_report_options(const ParsedOptions& options);

}  // namespace hmmjit::tools
