// The path of this program, or of the shared library that contains this code.
#pragma once

#include <filesystem>

namespace hmmjit {

/// The absolute path of the shared library, or else of the program (without symbolic links); empty
/// if unknown. Installed files are found relative to it, so the prefix may be moved.
std::filesystem::path own_file();

}  // namespace hmmjit
