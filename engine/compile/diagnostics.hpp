// The compiler's log as structured messages in template coordinates: the rendered source has
// `#line` markers, so file and line are the template's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hmmjit::compile {

struct Diagnostic {
  enum class Severity { kError, kWarning, kNote };
  Severity severity = Severity::kError;
  std::string file;  ///< "ssv/warp_striped.cu"; empty if the log names none
  int line = 0;
  std::string message;  ///< with the caret lines that follow, separated by newlines
};

std::vector<Diagnostic> parse_diagnostics(std::string_view log);

/// "ssv/warp_striped.cu:41: error: identifier "x" is undefined" for the first error, or the log's
/// first line if it has no error.
std::string first_error(std::string_view log);

}  // namespace hmmjit::compile
