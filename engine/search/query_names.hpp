// The names that reports give a query.
#pragma once

#include "model/targets.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Name, accession and description of a sequence that a model is built from.
QueryNames names_of(const TargetView& sequence);

}  // namespace hmmjit
