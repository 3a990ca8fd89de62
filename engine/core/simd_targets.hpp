// The vector instruction sets of this machine, as Highway's bits (HWY_AVX2 and so on).
//
// Uses only Highway's headers: loading its library measures the resolution of the clock, which
// takes longer than a small search.
#pragma once

#include <cstdint>

namespace hmmjit {

/// A bit for each of Highway's targets that the processor and the operating system support,
/// including the one that this program is compiled for. Beyond SSE2 only SSE4, AVX2 and AVX3 are
/// checked.
std::int64_t supported_simd_targets();

}  // namespace hmmjit
