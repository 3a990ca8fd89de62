#include "core/digest.hpp"

#include <array>
#include <cstdio>

// Inlined, so that no run-time library is needed.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hmmjit {

std::string Digest::text() const {
  std::array<char, 33> digits;
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx",
                static_cast<unsigned long long>(high), static_cast<unsigned long long>(low));
  return digits.data();
}

Digest digest(const void* data, std::size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
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
