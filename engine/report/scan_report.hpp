// The report of one sequence against all models, as hmmscan prints it.
#pragma once

#include <string>

#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// A sequence in the place of the query: `names` and its length.
struct ScannedSequence {
  QueryNames names;
  int length = 0;
  std::uint64_t models = 0, nodes = 0;  ///< searched with it
};

/// The whole of one sequence, from "Query:" to "//". `hits`: models in the place of targets
/// (finish_scan), with the counters of this sequence.
void append_scan_report(std::string& out, const ScannedSequence& sequence, const HitList& hits,
                        const ReportOptions& options, const FilterOptions& filters,
                        const ReportTimes& times);

}  // namespace hmmjit
