// An owned file descriptor, and reading and writing of descriptors.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace hmmjit {

/// Closes its descriptor on destruction. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  /// close(2) with its result; on Linux the descriptor is closed even after EINTR.
  int close() {
    const int result = ::close(std::exchange(value_, -1));
    return result != 0 && errno == EINTR ? 0 : result;
  }

 private:
  int value_;
};

/// Writes all bytes at the current file position, or from `offset` on; returns 0 or an errno.
inline int write_all(int descriptor, std::string_view bytes,
                     std::optional<std::uint64_t> offset = std::nullopt) noexcept {
  while (!bytes.empty()) {
    const ssize_t written =
        offset ? ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(*offset))
               : ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // a full pipe that does not block
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    if (offset) *offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

/// Reads at the current file position, or from `offset` on, until `to` is full or the file ends;
/// returns the number of bytes, or -1 with errno set.
inline ssize_t read_fully(int descriptor, std::span<char> to,
                          std::optional<std::uint64_t> offset = std::nullopt) noexcept {
  std::size_t done = 0;
  while (done < to.size()) {
    const std::span<char> rest = to.subspan(done);
    const ssize_t got =
        offset ? ::pread(descriptor, rest.data(), rest.size(), static_cast<off_t>(*offset + done))
               : ::read(descriptor, rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace hmmjit
