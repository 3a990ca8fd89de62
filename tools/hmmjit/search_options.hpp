// The options of `hmmjit search`: hmmsearch's, and ours.
#pragma once

#include <span>

#include "option_table.hpp"
#include "parts/part_format.hpp"
#include "report/main_report.hpp"
#include "search/device_choice.hpp"
#include "search/options.hpp"

namespace hmmjit::tools {

/// In hmmsearch's order, which its tables echo; ours last.
std::span<const OptionSpec> search_option_table();

/// Fails with kUsage where a value makes no sense.
Result<SearchOptions> make_search_options(const ParsedOptions& options);

/// --device and --vram. Fails with kUsage where a value makes no sense.
Result<DeviceChoice> make_device_choice(const ParsedOptions& options);

/// "gpu" or "gpu:1" as a number. `option` is the one that names the device.
Result<int> gpu_ordinal(std::string_view name, const char* option);

/// The share of --slice; 1/1 without.
Result<parts::Share> slice_of(const ParsedOptions& options);
ReportOptions make_report_options(const ParsedOptions& options);

}  // namespace hmmjit::tools
