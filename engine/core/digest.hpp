// Digests that stand for content: 128-bit XXH3, long enough to take equal digests for equal bytes
// where nobody tries to deceive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hmmjit {

struct Digest {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const Digest&) const = default;
  /// 32 hexadecimal digits.
  std::string text() const;
};

/// XXH3-128 (seed 0) of `size` bytes.
Digest digest(const void* data, std::size_t size);

/// The same value over bytes that arrive in pieces. One thread at a time.
class DigestStream {
 public:
  DigestStream();
  DigestStream(DigestStream&&) noexcept;
  DigestStream& operator=(DigestStream&&) noexcept;
  ~DigestStream();
  void update(const void* data, std::size_t size);
  Digest value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
