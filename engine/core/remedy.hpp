// Remedies for failed system calls.
#pragma once

#include <cerrno>

namespace hmmjit {

/// The remedy for the errno `error` if it is a limit of the process; otherwise `usual`.
inline const char* remedy_of(int error, const char* usual) {
  if (error == EMFILE || error == ENFILE) return "raise the limit on open files (ulimit -n)";
  if (error == EFBIG) return "raise the limit on file sizes (ulimit -f)";
  return usual;
}

}  // namespace hmmjit
