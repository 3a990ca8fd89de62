// Where this program lies, or the shared library that this code is part of.
#pragma once

#include <filesystem>

namespace hmmjit {

/// The file of the shared library, or of the program where the code is part of that: absolute, the
/// program's without symbolic links. Empty where the system does not say. What is installed beside
/// it is found from here, wherever the prefix has been moved to.
std::filesystem::path own_file();

}  // namespace hmmjit
