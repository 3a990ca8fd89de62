#include "core/error.hpp"

namespace hmmjit {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal: return "internal";
    case ErrorCode::kUsage: return "usage";
    case ErrorCode::kInput: return "input";
    case ErrorCode::kNoDevice: return "no-device";
    case ErrorCode::kResources: return "resources";
    case ErrorCode::kCompile: return "compile";
    case ErrorCode::kOutput: return "output";
    case ErrorCode::kInterrupted: return "interrupted";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text;
  if (!where.empty()) text = where + ": ";
  text += message;
  if (!remedy.empty()) text += "; " + remedy;
  // Messages quote names and tokens of damaged files: keep them on one line, and keep control
  // characters from the terminal.
  for (char& c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      c = ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      c = '?';
    }
  }
  return text;
}

}  // namespace hmmjit
