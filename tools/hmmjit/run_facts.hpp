// What outputs say of when and where they were made.
#pragma once

#include <string>

namespace hmmjit::tools {

/// Now, in the form of C's ctime without the line end, whatever the locale.
std::string date_text();
/// The current folder; "?" where it cannot be told.
std::string current_folder();

}  // namespace hmmjit::tools
