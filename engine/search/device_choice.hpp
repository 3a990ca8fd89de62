// Whether a search is worth starting a GPU for.
#pragma once

#include <optional>
#include <string>

#include "search/options.hpp"

namespace hmmjit {

/// Model positions and residues of a file, guessed from its size; nothing where that is not known
/// (standard input, a missing file).
std::optional<double> positions_of_file(const std::string& path);
std::optional<double> residues_of_file(const std::string& path);

/// False, and why in `note`, when the CPU would be done before a GPU has started. Unknown sizes
/// count as large.
bool device_pays(const SearchOptions& options, std::optional<double> positions,
                 std::optional<double> residues, std::string& note);

}  // namespace hmmjit
