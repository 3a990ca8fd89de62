// The text of `hmmjit --version --verbose`.
#pragma once

#include <string>

namespace hmmjit::tools {

/// The version, the build, and the libraries found on this machine, one "name: value" per line, for
/// bug reports. It names folders of the environment, but no file of the user. A missing library is
/// no error.
std::string version_text();

}  // namespace hmmjit::tools
