// What `hmmjit --version --verbose` prints.
#pragma once

#include <string>

namespace hmmjit::tools {

/// The version, how the program was built and what it finds on this machine, one "name: value" a
/// line: what a report of a bug should contain. Names no file of the user's and nothing of the
/// environment but folders. Nothing that is looked for and missing is an error.
std::string version_text();

}  // namespace hmmjit::tools
