// The --stats file: all measurements of a search, for programs (docs/statistics.md).
#pragma once

#include <optional>
#include <string>

#include "search/search.hpp"

namespace hmmjit {

struct RunStatistics {
  std::string program, version;  ///< of the search
  const SearchStatistics& search;
  const std::optional<gpu::Statistics>& gpu;  ///< none: no GPU was used
  std::string gpu_note;                       ///< why no GPU, or no more of them
};

/// One JSON object of several lines. Seconds of stages are core-seconds summed over threads, and
/// rates are per core. Peak resident memory is that of the process.
std::string run_statistics_json(const RunStatistics& run);

}  // namespace hmmjit
