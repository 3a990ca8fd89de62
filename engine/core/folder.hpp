// What lies in a folder.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace hmmjit {

/// The names in a folder without "." and "..", sorted. Fails with kInput where the folder cannot be
/// read; throws std::bad_alloc where memory runs out. The iterators of std::filesystem end the
/// process there in libstdc++: their increment is noexcept and allocates.
Result<std::vector<std::string>> names_in_folder(const std::string& folder);

}  // namespace hmmjit
