// Checksums of file sections: 64-bit XXH3, fast enough to be limited by memory alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hmmjit {

/// XXH3 (seed 0) of `size` bytes. Detects damage, not forgery.
std::uint64_t checksum(const void* data, std::size_t size);

/// The same value over bytes that arrive in pieces. One thread at a time.
class ChecksumStream {
 public:
  ChecksumStream();
  ChecksumStream(ChecksumStream&&) noexcept;
  ChecksumStream& operator=(ChecksumStream&&) noexcept;
  ~ChecksumStream();
  void update(const void* data, std::size_t size);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
