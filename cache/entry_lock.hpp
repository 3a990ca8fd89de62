// Advisory per-key locks between processes that no crash can leave behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace hmmjit::cache {

/// One byte of one empty lock file, locked through its own open file description (fcntl
/// F_OFD_SETLK): the kernel releases it when the description closes, also on SIGKILL, and it
/// excludes threads of one process as well as other processes. Locking byte ranges of a single
/// file leaves no per-key files to clean up.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  /// Waits at most `wait` (zero: one try). Fails with kResources when another holder kept it for
  /// so long, with kOutput when the file system offers no lock or the file cannot be opened.
  static Result<FileLock> acquire(const std::string& path, std::uint64_t offset,
                                  std::chrono::milliseconds wait, unsigned file_mode);
  bool held() const { return descriptor_ >= 0; }
  void release();

 private:
  int descriptor_ = -1;
};

}  // namespace hmmjit::cache
