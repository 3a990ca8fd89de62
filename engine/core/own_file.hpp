// The file of this program, or of the shared library that this code is part of.
#pragma once

#include <filesystem>

namespace hmmjit {

/// The absolute path of the shared library, or else of the program (without symbolic links); empty
/// if the system does not tell. Installed files are found relative to it, wherever the prefix has
/// moved.
std::filesystem::path own_file();

}  // namespace hmmjit
