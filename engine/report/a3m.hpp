// The included domains of a model as an A3M alignment (docs/outputs.md).
#pragma once

#include <string>

#include "search/search.hpp"

namespace hmmjit {

/// Appends the record; returns its number of domains, 0 when there is none and nothing was written.
/// The model's consensus is the first row, so every row has M match columns. Needs the alignments
/// of the domains.
std::size_t append_a3m(std::string& out, const ModelInfo& model, const HitList& hits);

}  // namespace hmmjit
