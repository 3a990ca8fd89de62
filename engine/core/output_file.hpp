// A file that appears under its final name only when it is complete.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace hmmjit {

/// Writes to a uniquely named temporary beside `path`; `commit` flushes, closes and renames it.
/// Destroyed without commit, the temporary is removed and nothing appears under `path`.
/// A path that names something other than a regular file (/dev/null, a pipe, "-" is NOT special)
/// is written in place; /dev/stdout, /dev/stderr and /dev/fd/N are the open descriptors. A
/// symbolic link stays one, the file it leads to is replaced. One thread at a time. All temporaries
/// of the process can be removed from a signal handler or before _exit with
/// `discard_all_temporaries`.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// Buffered write; a failure (disk full) is remembered and returned by the next status/commit.
  void write(std::string_view bytes);
  /// Replaces bytes written before, from `offset` of the file on. Fails with kOutput, also where
  /// the file cannot be positioned (a pipe).
  Status write_at(std::uint64_t offset, std::string_view bytes);
  Status flush();
  Status commit();
  const std::string& path() const { return path_; }

  /// Unlinks every temporary not yet committed; async-signal-safe.
  static void discard_all_temporaries() noexcept;

 private:
  OutputFile() = default;
  void discard() noexcept;

  std::string path_;
  std::string temporary_;  // empty when written in place
  int descriptor_ = -1;
  int slot_ = -1;  // index in the process-wide table of temporaries
  int write_error_ = 0;
  std::string buffer_;
};

}  // namespace hmmjit
