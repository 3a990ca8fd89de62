// Digests and checksums of content: XXH3 (seed 0), as fast as memory.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/hidden.hpp"

namespace hmmjit {

/// 128 bits: enough to treat equal digests as equal bytes, unless somebody forges them.
struct Digest {
  std::uint64_t low = 0, high = 0;

  /// 32 lower-case hexadecimal digits, most significant first.
  std::string hex() const;
  static std::optional<Digest> from_hex(std::string_view hex);
  /// 16 bytes, most significant first (XXH3's canonical form).
  std::string bytes() const;
  static Digest from_bytes(std::string_view sixteen);

  auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::string_view bytes);

/// A 64-bit checksum of `size` bytes. Detects damage, not forgery.
std::uint64_t checksum(const void* data, std::size_t size);

/// Computes digest_of() and checksum() of bytes that arrive in pieces. One thread at a time.
class DigestStream {
 public:
  DigestStream();
  void update(std::string_view bytes);
  Digest value() const;
  std::uint64_t checksum() const;

 private:
  struct State;
  Hidden<State> state_;
};

}  // namespace hmmjit
