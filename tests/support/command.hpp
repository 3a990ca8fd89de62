// Running an installed program and reading what it prints, for tests that compare with it live.
#pragma once

#include <optional>
#include <string>

namespace hmmjit::test_support {

/// True when a program of that name is on the PATH.
bool has_program(const std::string& name);

/// Standard output of a shell command; nothing when it fails to start or exits with an error.
std::optional<std::string> output_of(const std::string& command);

}  // namespace hmmjit::test_support
