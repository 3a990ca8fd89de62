// Implementation struct of ModelResult: the internals' result and views of it.
#pragma once

#include <vector>

#include "api/host_calls.hpp"
#include "hmmjit/search.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {

struct ModelResult::Impl {
  hmmjit::ModelResult result;
  std::string accession, description;
  std::vector<Domain> domains;
  std::vector<Hit> hits;
  FilterCounts counts;
};

ModelResult make_result(const hmmjit::ModelResult& result);
/// Passes a result to the host's callback, or collects it where there is none.
Status deliver(const hmmjit::ModelResult& given, const SearchCallbacks& callbacks, HostCalls& host,
               std::vector<ModelResult>& results);
FilterCounts to_counts(const FilterCounters& counters);

}  // namespace hmmjit::v0
