#include "tests/support/command.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace hmmjit::test_support {

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), n);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  return text;
}

}  // namespace hmmjit::test_support
