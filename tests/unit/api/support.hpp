// Shared by the tests of the library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>

#include "hmmjit/hmmjit.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/generated_inputs.hpp"

namespace hmmjit::tests {

/// The code of the error that `call` throws, and its text.
inline v0::ErrorCode code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const v0::Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return v0::ErrorCode::kInternal;
}

/// Omits lines with one of these beginnings.
inline std::string without_lines(const std::string& text,
                                 std::initializer_list<const char*> begins) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (std::ranges::none_of(begins, [&](const char* begin) { return line.starts_with(begin); }))
      out += line + "\n";
  }
  return out;
}
inline std::string without_times(const std::string& text) {
  return without_lines(text, {"# CPU time", "# Mc/sec"});
}

inline v0::SearchOptions on_cpu(int threads = 2) {
  v0::SearchOptions options;
  options.device = HMMJIT_DEVICE_CPU;
  options.threads = threads;
  return options;
}

struct ParsedInputs {
  v0::Models models;
  v0::Targets targets;
};
inline ParsedInputs parsed(const Inputs& inputs) {
  return {v0::Models::from_memory(inputs.models), v0::Targets::from_memory(inputs.targets)};
}
inline ParsedInputs parsed_inputs(unsigned seed, int models, int targets) {
  return parsed(make_inputs(seed, models, targets));
}

}  // namespace hmmjit::tests
