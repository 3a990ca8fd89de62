// "Did you mean ...?" for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hmmjit::tools {

/// The name that `typed` is most likely a slip of the finger of, empty where none is near: one
/// change to a short word, two to a longer one, among letters put in, left out, replaced, or
/// exchanged with their neighbours (Damerau 1964, CACM 7:171).
std::string nearest_name(std::string_view typed, std::span<const std::string> names);

/// "did you mean NAME?", or `otherwise` where no name is near.
std::string did_you_mean(std::string_view typed, std::span<const std::string> names,
                         std::string otherwise);

}  // namespace hmmjit::tools
