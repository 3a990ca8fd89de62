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

/// The value of CUDA_VISIBLE_DEVICES with which the driver starts no devices behind number `last`,
/// each of which it takes a quarter of a second for, and numbers the others as before. `present`:
/// its value now, null where it is not set. Nothing where it should stay as it is.
std::optional<std::string> visible_devices_up_to(int last, const char* present);

}  // namespace hmmjit
