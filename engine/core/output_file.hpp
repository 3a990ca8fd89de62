// A file that appears under its final name only when it is complete.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace hmmjit {

/// Writes to a uniquely named temporary beside `path`; `commit` flushes, closes and renames it.
/// Destroyed without commit, the temporary is removed and nothing appears under `path`.
/// A path that names something other than a regular file (/dev/null, a pipe, "-" is NOT special)
/// is written in place; /dev/stdout, /dev/stderr and /dev/fd/N are the open descriptors. A
/// symbolic link stays one, the file it leads to is replaced, or made where it does not exist. A
/// writable file in a folder that takes no new files is overwritten by `commit` from an unnamed
/// temporary in $TMPDIR or /tmp: until then it is as it was, but a full disk or a kill during the
/// copy leaves a part. One thread at a time. All temporaries of the process can be removed from a
/// signal handler or before _exit with `discard_all_temporaries`.
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
  Status copy_into_place();

  std::string path_;
  std::string temporary_;  // empty when written in place, or without a name
  bool copied_ = false;    // by commit, from a temporary without a name
  int descriptor_ = -1;
  int slot_ = -1;  // index in the process-wide table of temporaries
  int write_error_ = 0;
  std::string buffer_;
};

/// A file to be written or read, and what asked for it: {"--tblout", "hits.tbl"}.
struct NamedFile {
  std::string option, path;
};

/// Fails with kUsage when an output has an empty name, is the same file as another output, or is
/// one of `inputs` ("-": standard input): one of the two would be lost. Files are the same by
/// device and inode, or by resolved path. Devices and pipes may be named any number of times.
Status check_outputs(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs);

}  // namespace hmmjit
