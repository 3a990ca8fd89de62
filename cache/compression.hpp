// Compression with zstd, one frame per text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::cache {

/// Upper bound on a section's size: bounds the allocation that a forged size can cause.
inline constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{256} << 20;

std::string compress(std::string_view raw);

/// Fails with kInput unless `packed` is exactly one frame of `raw_size` bytes.
Result<std::string> decompress(std::string_view packed, std::uint64_t raw_size);

}  // namespace hmmjit::cache
