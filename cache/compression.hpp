// One zstd frame per text; sizes are known before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::cache {

/// Upper bound on a section's size, so that a forged size cannot cause an unbounded allocation.
inline constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{256} << 20;

std::string compress(std::string_view raw);

/// Fails with kInput unless `packed` is exactly one frame of `raw_size` bytes.
Result<std::string> decompress(std::string_view packed, std::uint64_t raw_size);

}  // namespace hmmjit::cache
