// The included domains of a model as an A3M alignment (docs/outputs.md).
#pragma once

#include <string>

#include "search/search.hpp"

namespace hmmjit {

/// Appends the record; returns its number of domains, 0 when there is none and nothing was written.
/// The model's consensus is the first row, so every row has M match columns. Needs the alignments
/// of the domains. `begun`: the rows follow those of hits that stand before these. `targets_left`:
/// as many targets at most; those that have a row are subtracted. Null: all.
std::size_t append_a3m(std::string& out, const ModelInfo& model, const HitList& hits,
                       bool begun = false, std::size_t* targets_left = nullptr);

}  // namespace hmmjit
