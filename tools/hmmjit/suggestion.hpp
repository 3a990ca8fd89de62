// "Did you mean ...?" for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hmmjit::tools {

/// The name that was most likely meant by `typed`; empty if none is near. A short word may differ
/// by one insertion, deletion, substitution or transposition, a longer one by two (Damerau 1964,
/// CACM 7:171).
std::string nearest_name(std::string_view typed, std::span<const std::string> names);

/// "did you mean NAME?", or `otherwise` if no name is near.
std::string did_you_mean(std::string_view typed, std::span<const std::string> names,
                         std::string otherwise);

}  // namespace hmmjit::tools
