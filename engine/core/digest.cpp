#include "core/digest.hpp"

#include <fmt/format.h>

#include <charconv>

// Inlined: needs no shared library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hmmjit {

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::string Digest::bytes() const {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, {low, high});
  return {reinterpret_cast<const char*>(bytes.digest), sizeof bytes.digest};
}

Digest Digest::from_bytes(std::string_view sixteen) {
  const XXH128_hash_t hash =
      XXH128_hashFromCanonical(reinterpret_cast<const XXH128_canonical_t*>(sixteen.data()));
  return {hash.low64, hash.high64};
}

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  Digest digest;
  const char* const middle = hex.data() + 16;
  std::from_chars(hex.data(), middle, digest.high, 16);
  std::from_chars(middle, middle + 16, digest.low, 16);
  if (digest.hex() != hex) return std::nullopt;
  return digest;
}

Digest digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::uint64_t checksum(const void* data, std::size_t size) { return XXH3_64bits(data, size); }

// XXH3's 64-bit and 128-bit streams share the state and differ only in the final step.
struct DigestStream::State {
  XXH3_state_t xxh;
};

DigestStream::DigestStream() : state_(make_hidden<State>()) { XXH3_128bits_reset(&state_->xxh); }

void DigestStream::update(std::string_view bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Digest DigestStream::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.low64, hash.high64};
}

std::uint64_t DigestStream::checksum() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace hmmjit
