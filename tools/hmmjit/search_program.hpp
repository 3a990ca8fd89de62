// The programs that search targets share one implementation; each describes what is its own.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "option_table.hpp"
#include "search/search.hpp"

namespace hmmjit::tools {

/// Queries that are sequences.
struct SequenceQueries {
  ModelSource models;
  build::CalibrationOptions calibration;
};

struct SearchProgram {
  std::string_view name;       ///< "search": what follows "hmmjit"
  std::string_view title;      ///< what it does, for the header
  std::string_view reference;  ///< whose result lines it gives: "hmmsearch"
  OptionText queries, targets;
  std::string_view query_label;  ///< of the query file in the header: "query HMM file:"
  std::span<const OptionSpec> (*options)();
  /// Opens a file of query sequences; null where queries are profiles.
  Result<SequenceQueries> (*open_queries)(const ParsedOptions& options,
                                          const std::string& path) = nullptr;
};

int run_search_program(const SearchProgram& program, const std::vector<std::string>& arguments);

}  // namespace hmmjit::tools
