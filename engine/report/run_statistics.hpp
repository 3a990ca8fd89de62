// Everything measured of a search, for programs: the --stats file (docs/statistics.md).
#pragma once

#include <optional>
#include <string>

#include "search/search.hpp"

namespace hmmjit {

struct RunStatistics {
  std::string program, version;  ///< who searched
  const SearchStatistics& search;
  const std::optional<gpu::Statistics>& gpu;  ///< nothing: no GPU was used, for this reason:
  std::string gpu_note;
};

/// One JSON object of several lines. Stage seconds are core-seconds summed over threads, rates per
/// core; the peak of resident memory is the process's.
std::string run_statistics_json(const RunStatistics& run);

}  // namespace hmmjit
