// Locale-independent conversion between text and numbers (LC_ALL must not change a result).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hmmjit {

/// Whole-token conversions: the complete text must be consumed; a leading '+' is accepted.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_real(std::string_view text);

/// A byte count: "400M", "1.5G", "4096" (suffix K, M, G, T: powers of 1024, optional "B"/"iB").
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace hmmjit
