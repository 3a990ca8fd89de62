// Errors as values. Every failure a user can cause states what happened, where, and the remedy in
// one line; the program maps the code to its documented exit status (docs/guide.md).
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace hmmjit {

/// Kinds of failure; the numeric value is the exit status of the hmmjit program.
enum class ErrorCode : int {
  kInternal = 1,       ///< a broken invariant: a bug in hmmjit
  kUsage = 2,          ///< a command line or an argument that makes no sense
  kInput = 3,          ///< a missing, malformed or unsuitable input file
  kNoDevice = 4,       ///< a GPU was demanded and none can be used
  kResources = 5,      ///< out of memory, threads, device memory
  kCompile = 6,        ///< a kernel could not be rendered or compiled
  kOutput = 7,         ///< an output file could not be written
  kInterrupted = 130,  ///< cancelled by SIGINT, SIGTERM or the caller
};

/// Short stable name ("input", "output", ...), as used in JSON and logs.
const char* error_code_name(ErrorCode code);

/// What went wrong (`message`), at which file/line/record/option (`where`, may be empty), and
/// what the user can do about it (`remedy`, may be empty).
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string where;
  std::string remedy;

  /// "where: message; remedy" on one line; empty parts are left out.
  std::string to_string() const;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {},
                                   std::string remedy = {}) {
  return std::unexpected<Error>(
      Error{code, std::move(message), std::move(where), std::move(remedy)});
}

}  // namespace hmmjit

#define HMMJIT_CONCAT_INNER(a, b) a##b
#define HMMJIT_CONCAT(a, b) HMMJIT_CONCAT_INNER(a, b)

/// Returns the error of a Status/Result expression from the enclosing function.
#define HMMJIT_TRY(expression)                                                    \
  do {                                                                            \
    auto hmmjit_status = (expression);                                            \
    if (!hmmjit_status) return std::unexpected(std::move(hmmjit_status).error()); \
  } while (0)

/// `HMMJIT_ASSIGN(auto x, f())` sets x to the value of the Result, or returns its error.
#define HMMJIT_ASSIGN(declaration, expression)                                            \
  auto HMMJIT_CONCAT(hmmjit_result_, __LINE__) = (expression);                            \
  if (!HMMJIT_CONCAT(hmmjit_result_, __LINE__))                                           \
    return std::unexpected(std::move(HMMJIT_CONCAT(hmmjit_result_, __LINE__)).error());   \
  declaration = std::move(*HMMJIT_CONCAT(hmmjit_result_, __LINE__))
