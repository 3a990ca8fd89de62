// The 128-bit fingerprint used for names and checksums.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hmmjit::cache {

/// A 128-bit XXH3 value; integrity and look-up only, never a proof of authorship.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// 32 lower-case hexadecimal digits, most significant first.
  std::string hex() const;
  /// 16 bytes, most significant first (XXH3's canonical form).
  std::string bytes() const;
  static Digest from_bytes(std::string_view sixteen);
  static std::optional<Digest> from_hex(std::string_view hex);

  auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::string_view bytes);

/// The same value over bytes that arrive in pieces.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(const DigestStream&) = delete;
  DigestStream& operator=(const DigestStream&) = delete;
  void update(std::string_view bytes);
  Digest digest() const;

 private:
  void* state_;
};

}  // namespace hmmjit::cache
