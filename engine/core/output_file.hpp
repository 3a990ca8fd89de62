// A file that gets its final name only once complete.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"
#include "core/error.hpp"

namespace hmmjit {

/// Writes to a temporary next to `path`, which is renamed to `path` on publication. If the object
/// is destroyed first, the temporary is removed and nothing appears under `path`; the temporary of
/// a killed process is removed by the next process that writes the same output. Anything but a
/// regular file (/dev/null, a pipe; "-" is NOT special) is written in place; /dev/stdout,
/// /dev/stderr and /dev/fd/N are the open descriptors. A symbolic link is kept: its target is
/// replaced, keeping its permissions and, where possible, its group and owner, or is created. A
/// writable file that cannot be replaced (its folder accepts no new files, or it is another user's
/// file in /tmp) is overwritten on publication from an unnamed temporary in $TMPDIR or /tmp: until
/// then it is unchanged, but a full disk or a kill during the copy leaves a partial file. An
/// existing file that stays empty until publication is filled in the same way, unless the output is
/// durable: a program that made the file (mkstemp) can read the result through its own descriptor.
/// After an error the file is empty again. One thread at a time. `discard_all_temporaries` removes
/// all temporaries of the process, from a signal handler or before _exit.
class OutputFile {
 public:
  /// Fails with kOutput.
  static Result<OutputFile> create(const std::string& path);

  /// Makes publication wait for the disk: after a power failure, the name refers to the complete
  /// new file or the old one.
  void make_durable() { durable_ = true; }
  /// Buffered write. After a failure (disk full), later writes are dropped, and status, flush and
  /// publication return the error.
  void write(std::string_view bytes);
  /// kOutput once a write has failed.
  Status status() const;
  /// Fails with kOutput unless write_at() can be used: a pipe, or a descriptor that appends or has
  /// been written to, does not allow it. Call it before the first write.
  Status require_start() const;
  /// Overwrites bytes from file offset `offset` on. Fails with kOutput, for example if the file
  /// cannot be positioned (a pipe).
  Status write_at(std::uint64_t offset, std::string_view bytes);
  Status flush();

  enum class Afterwards { kProcessGoesOn, kProcessEnds };
  /// Flushes all files, then renames all: no file gets its name before the file systems have
  /// accepted every byte of all files. If a rename fails, the earlier ones are undone, except on
  /// file systems that cannot exchange two names. Signals are postponed meanwhile
  /// (InterruptionHold); with kProcessEnds they are dropped if all succeeds, because the process
  /// then ends with success. Fails with kOutput.
  static Status publish(std::span<OutputFile* const> files,
                        Afterwards afterwards = Afterwards::kProcessGoesOn);
  /// Publishes this file.
  Status commit();
  const std::string& path() const { return path_; }

  /// True if this process has published a file; async-signal-safe.
  static bool any_published() noexcept;
  /// Removes every unpublished temporary; async-signal-safe.
  static void discard_all_temporaries() noexcept;

 private:
  enum class Step { kWritten, kFilled, kNew, kExchanged, kReplaced };
  OutputFile() = default;
  int begin_temporary();
  bool may_replace(const struct stat& old) const;
  Status finish();
  bool fills_old_file();
  Status copy_into_place();
  int rename_into_place();
  void undo();

  // Removes its file on destruction.
  struct Temporary {
    ~Temporary();
    std::string name;  // empty: the file is published
    int slot;          // index in the process-wide table of temporaries
    int process;       // creator: a forked child leaves the file alone
  };

  std::string path_;   // as given
  std::string place_;  // the final file after following links; empty when written in place
  Descriptor descriptor_;
  Descriptor old_;  // the file to overwrite from the temporary
  // Null when written in place, or if unnamed. Removed before `descriptor_`, which holds its lock.
  std::unique_ptr<Temporary> temporary_;
  Step step_ = Step::kWritten;
  bool durable_ = false;
  int write_error_ = 0;
  std::string buffer_;
};

/// A file to write or read, and the option that names it: {"--tblout", "hits.tbl"}.
struct NamedFile {
  std::string option, path;
};

/// Fails with kUsage if an output has an empty name, is the same file as another output, or is one
/// of `inputs` ("-": standard input), because one of the two would be lost; with kOutput if a
/// file that exists cannot be overwritten. Compares files by device and inode, or by resolved path.
/// Devices, pipes and open descriptors may be named several times; outputs to one descriptor follow
/// each other.
Status check_outputs(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs);

}  // namespace hmmjit
