// Delivers results to their sinks.
#pragma once

#include <cstdint>

#include "search/search.hpp"

namespace hmmjit::search_run {

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
