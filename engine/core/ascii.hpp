// ASCII letters. The functions of <cctype> depend on the host's locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace hmmjit {

constexpr char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr bool is_ascii_letter(char c) {
  const char lower = ascii_lower(c);
  return lower >= 'a' && lower <= 'z';
}
inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ascii_lower, ascii_lower);
}

}  // namespace hmmjit
