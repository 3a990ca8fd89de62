// The included domains of a model as an A3M alignment (docs/outputs.md).
#pragma once

#include <string>

#include "search/search.hpp"

namespace hmmjit {

/// Appends rows and returns their number. The first row, written unless `begun`, is the model's
/// consensus, so every row has M match columns. Needs the alignments of the domains.
/// `targets_left`: limit on the targets with a row, decreased by their number; null: no limit.
std::size_t append_a3m(std::string& out, const HitLot& lot, bool begun = false,
                       std::size_t* targets_left = nullptr);

}  // namespace hmmjit
