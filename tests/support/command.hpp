// Runs installed programs, for tests that compare with them.
#pragma once

#include <optional>
#include <string>

namespace hmmjit::test_support {

/// True if PATH has a program of that name.
bool has_program(const std::string& name);

/// Standard output of a shell command; nothing if it fails.
std::optional<std::string> output_of(const std::string& command);

}  // namespace hmmjit::test_support
