#include "cache/entry_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace hmmjit::cache {

Result<FileLock> FileLock::acquire(const std::string& path, std::uint64_t offset,
                                   std::chrono::milliseconds wait, unsigned file_mode,
                                   const std::function<bool()>& stopped) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  FileLock lock;
  lock.descriptor_ =
      Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                        static_cast<mode_t>(file_mode)));
  if (!lock.held()) {
    return fail(ErrorCode::kOutput, fmt::format("cannot open lock file: {}", std::strerror(errno)),
                path);
  }
  // See EntryStore::share.
  struct stat info {};
  struct stat folder {};
  if ((file_mode & 0060) != 0 && ::fstat(lock.descriptor_.get(), &info) == 0 &&
      info.st_uid == ::geteuid() && ::stat(path.substr(0, path.rfind('/')).c_str(), &folder) == 0 &&
      (info.st_gid != folder.st_gid || (info.st_mode & 0777) != file_mode)) {
    [[maybe_unused]] const int given =
        ::fchown(lock.descriptor_.get(), static_cast<uid_t>(-1), folder.st_gid);
    (void)::fchmod(lock.descriptor_.get(), static_cast<mode_t>(file_mode));
  }
  // Poll: only a signal could end a blocking wait (F_OFD_SETLKW), and signals belong to the host
  // program. The pause doubles up to 20 ms; a compile takes 50 to 500 ms.
  auto pause = std::chrono::milliseconds(1);
  for (;;) {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(offset);
    range.l_len = 1;
    if (::fcntl(lock.descriptor_.get(), F_OFD_SETLK, &range) == 0) return lock;
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EACCES) {
      return fail(ErrorCode::kOutput,
                  fmt::format("this file system offers no locks: {}", std::strerror(error)), path);
    }
    const auto now = std::chrono::steady_clock::now();
    if (stopped && stopped())
      return fail(ErrorCode::kInterrupted, "the wait for a lock was stopped", path);
    if (now >= deadline) {
      return fail(ErrorCode::kResources,
                  fmt::format("another process kept the lock for {} ms", wait.count()), path);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
    std::this_thread::sleep_for(std::min(pause, left + std::chrono::milliseconds(1)));
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
}

}  // namespace hmmjit::cache
