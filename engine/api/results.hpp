// Implementation struct of ModelResult: the internals' result and views of it.
#pragma once

#include <vector>

#include "api/convert.hpp"
#include "hmmjit/results.hpp"
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
FilterCounts to_counts(const FilterCounters& counters);

}  // namespace hmmjit::v0
