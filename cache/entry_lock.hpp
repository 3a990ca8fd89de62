// Advisory locks per key between processes. A crash releases them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "core/descriptor.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

/// One byte of an empty lock file, locked through its own open file description (fcntl
/// F_OFD_SETLK). The system releases the lock when the description is closed, even by SIGKILL. It
/// excludes threads as well as processes. One file serves all keys, so no file per key is left
/// behind.
class FileLock {
 public:
  /// Waits at most `wait` (zero: tries once), or until `stopped` returns true. Fails with
  /// kResources if another holder keeps the lock that long, with kInterrupted if stopped, and with
  /// kOutput if the file system has no locks or the file cannot be opened.
  static Result<FileLock> acquire(const std::string& path, std::uint64_t offset,
                                  std::chrono::milliseconds wait, unsigned file_mode,
                                  const std::function<bool()>& stopped = {});
  bool held() const { return descriptor_.get() >= 0; }
  void release() { descriptor_ = Descriptor(); }

 private:
  Descriptor descriptor_;
};

}  // namespace hmmjit::cache
