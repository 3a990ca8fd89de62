// Lists the names in a folder.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace hmmjit {

/// The names in a folder without "." and "..", sorted. Fails with kInput if the folder cannot be
/// read; throws std::bad_alloc if memory runs out. (std::filesystem's iterators of libstdc++ would
/// end the process: their increment is noexcept but allocates.)
Result<std::vector<std::string>> names_in_folder(const std::string& folder);

}  // namespace hmmjit
