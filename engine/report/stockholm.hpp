// The alignment of a model's included domains as one Stockholm record (-A).
#pragma once

#include <string>

#include "search/search.hpp"

namespace hmmjit {

/// Appends the record; returns its number of rows (included domains), 0 when there is none and
/// nothing was written. `columns`: alignment columns per block, 0 for one block. Needs the
/// alignments of the domains.
std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author);

}  // namespace hmmjit
