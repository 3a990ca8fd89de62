// The compiler's log as structured messages in template coordinates. The rendered source carries
// `#line` markers, so file and line are those of the template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hmmjit::compile {

struct Diagnostic {
  enum class Severity { kError, kWarning, kNote };
  Severity severity = Severity::kError;
  std::string file;  ///< "ssv/warp_striped.cu"; empty when the log names none
  int line = 0;
  std::string message;  ///< with the caret lines that follow it, newline-separated
};

std::vector<Diagnostic> parse_diagnostics(std::string_view log);

/// "ssv/warp_striped.cu:41: error: identifier "x" is undefined" for the first error; the first line
/// of the log if it has no error.
std::string first_error(std::string_view log);

}  // namespace hmmjit::compile
