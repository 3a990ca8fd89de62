// A file descriptor with an owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hmmjit {

/// Closes its descriptor when it is destroyed. -1: none.
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

}  // namespace hmmjit
