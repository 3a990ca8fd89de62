#include "core/digest.hpp"

// Inlined, so that no run-time library is needed.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hmmjit {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (char byte : bytes()) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(kDigits[value >> 4]);
    text.push_back(kDigits[value & 15]);
  }
  return text;
}

std::string Digest::bytes() const {
  std::string out(16, '\0');
  for (int i = 0; i < 8; ++i) {
    out[i] = static_cast<char>(static_cast<unsigned char>(high >> (56 - 8 * i)));
    out[i + 8] = static_cast<char>(static_cast<unsigned char>(low >> (56 - 8 * i)));
  }
  return out;
}

Digest Digest::from_bytes(std::string_view sixteen) {
  Digest digest;
  for (int i = 0; i < 8; ++i) {
    digest.high = digest.high << 8 | static_cast<unsigned char>(sixteen[i]);
    digest.low = digest.low << 8 | static_cast<unsigned char>(sixteen[i + 8]);
  }
  return digest;
}

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  Digest digest;
  for (std::size_t i = 0; i < 32; ++i) {
    const int value = hex_value(hex[i]);
    if (value < 0) return std::nullopt;
    std::uint64_t& half = i < 16 ? digest.high : digest.low;
    half = half << 4 | static_cast<std::uint64_t>(value);
  }
  return digest;
}

Digest digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

struct DigestStream::State {
  XXH3_state_t xxh;
};

DigestStream::DigestStream() : state_(new State) { XXH3_128bits_reset(&state_->xxh); }
DigestStream::DigestStream(DigestStream&&) noexcept = default;
DigestStream& DigestStream::operator=(DigestStream&&) noexcept = default;
DigestStream::~DigestStream() = default;

void DigestStream::update(const void* data, std::size_t size) {
  XXH3_128bits_update(&state_->xxh, data, size);
}

Digest DigestStream::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.low64, hash.high64};
}

}  // namespace hmmjit
