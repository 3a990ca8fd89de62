// Makes the complete result of a model that has all its hits, and delivers results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "search/kept_hits.hpp"
#include "search/work.hpp"

namespace hmmjit::search_run {

/// Judges the hits of a model; releases its tables. Fails with errors that end the search.
Result<FinishedPtr> finish(ModelJob& job, const SearchOptions& options, KeptHits& hits,
                           Agenda& agenda);
/// Makes a part of the text; true with the last one.
bool make_part(const FormatPart& work);

/// Passes results to sinks and sums them up. One thread at a time.
class ResultWriter {
 public:
  explicit ResultWriter(SearchProgress& progress) : progress_(progress) {}
  Status deliver(const ModelResult& result, ResultSink& sink);
  void add_to(SearchStatistics& statistics) const;

 private:
  SearchProgress& progress_;
  FilterCounters counters_;
  std::uint64_t hits_ = 0, domains_ = 0;
  double seconds_ = 0;
};

}  // namespace hmmjit::search_run
