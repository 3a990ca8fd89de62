// Merges parts into the outputs of the whole search, or into one larger part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "parts/part_set.hpp"
#include "report/report_writer.hpp"

namespace hmmjit::parts {

struct MergeOptions {
  std::uint64_t memory = 0;  ///< bound on resident bytes; 0: half of the free memory
  Share slice;               ///< of the models; outputs of all slices, concatenated, are the whole
  /// Called after each model; may be empty.
  std::function<void(std::uint64_t done, std::uint64_t models)> on_progress = {};
};

/// Writes the results of all parts as one search would. The writer's options must have the search's
/// rules for scan tables, scan_by_range, and `begins` and `ends` of the slice. Stays within the
/// memory bound: hits of a model that do not fit are read in lots, twice. Fails with kInput if the
/// set is incomplete, and with kResources if the bound is too small for a block of every part.
Status merge_reports(const PartSet& set, ReportWriter& writer, const MergeOptions& options);

/// Passes every model's result to `sink`, in order; holds the hits of one model in memory. Fails
/// with kInput if the set is incomplete.
Status merge_results(const PartSet& set, ResultSink& sink);

/// Writes adjacent parts as one part, with the content of a search of that part, and returns the
/// content digest. Fails with kInput unless they are adjacent.
Result<Digest> merge_into_part(const PartSet& set, const std::string& path,
                               const PartOrigin& origin, const MergeOptions& options);

}  // namespace hmmjit::parts
