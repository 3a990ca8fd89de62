// The exception type of the library.
//
//   try {
//     hmmjit::Models::load("missing.hmm");
//   } catch (const hmmjit::Error& error) {
//     std::cerr << error.what() << '\n';          // or message(), where(), remedy(), code()
//   }
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "hmmjit/export.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Kinds of failure. The values are the exit statuses of the hmmjit program and the status codes
/// of the C interface.
enum class ErrorCode : int {
  kInternal = 1,       ///< a broken invariant: a bug in hmmjit
  kUsage = 2,          ///< an argument that makes no sense
  kInput = 3,          ///< a missing, malformed or unsuitable model or sequence
  kNoDevice = 4,       ///< a GPU was demanded and none can be used
  kResources = 5,      ///< out of memory, threads, device memory
  kCompile = 6,        ///< a kernel could not be rendered, compiled or loaded
  kOutput = 7,         ///< a file could not be written
  kInterrupted = 130,  ///< cancelled by the host
};

/// Short stable name: "internal", "usage", "input", "no-device", "resources", "compile",
/// "output", "interrupted".
HMMJIT_EXPORT const char* error_code_name(ErrorCode code) noexcept;

/// The only exception type of the library. Exceptions of a host's callbacks pass unchanged. Copying
/// does not throw.
class HMMJIT_EXPORT Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string where = {}, std::string remedy = {});
  ~Error() override;
  Error(const Error&) noexcept;
  Error& operator=(const Error&) noexcept;

  /// "where: message; remedy" on one line of printable text, without empty parts.
  const char* what() const noexcept override;
  ErrorCode code() const noexcept;
  /// What went wrong.
  const std::string& message() const noexcept;
  /// File and line, record or option; may be empty.
  const std::string& where() const noexcept;
  /// What the user can do about it; may be empty.
  const std::string& remedy() const noexcept;

 private:
  struct Text;
  std::shared_ptr<const Text> text_;
};

HMMJIT_END_NAMESPACE
