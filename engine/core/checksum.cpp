#include "core/checksum.hpp"

// Inlined, so that no run-time library is needed.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hmmjit {

std::uint64_t checksum(const void* data, std::size_t size) { return XXH3_64bits(data, size); }

struct ChecksumStream::State {
  XXH3_state_t xxh;
};

ChecksumStream::ChecksumStream() : state_(new State) { XXH3_64bits_reset(&state_->xxh); }
ChecksumStream::ChecksumStream(ChecksumStream&&) noexcept = default;
ChecksumStream& ChecksumStream::operator=(ChecksumStream&&) noexcept = default;
ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::update(const void* data, std::size_t size) {
  XXH3_64bits_update(&state_->xxh, data, size);
}

std::uint64_t ChecksumStream::value() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace hmmjit
