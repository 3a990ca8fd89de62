// ASCII letters. The functions of <cctype> depend on the host's locale.
#pragma once

namespace hmmjit {

constexpr char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr bool is_ascii_letter(char c) {
  const char lower = ascii_lower(c);
  return lower >= 'a' && lower <= 'z';
}

}  // namespace hmmjit
