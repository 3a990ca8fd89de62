// Words and lines of text.
#pragma once

#include <algorithm>
#include <string_view>

namespace hmmjit {

inline constexpr std::string_view kBlanks = " \t\r\n\v\f";

/// True for a character of kBlanks, whose members find_first_of() would seek one by one.
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline std::string_view trim_begin(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

inline std::string_view trim_end(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

inline std::string_view trim(std::string_view text) { return trim_end(trim_begin(text)); }

inline bool is_blank(std::string_view text) { return trim_begin(text).empty(); }

/// Removes the first word from `*text` and returns it; empty if there is none.
inline std::string_view take_word(std::string_view* text) {
  *text = trim_begin(*text);
  std::size_t size = 0;
  while (size < text->size() && !is_blank((*text)[size])) ++size;
  const std::string_view word = text->substr(0, size);
  text->remove_prefix(size);
  return word;
}

/// Removes the text up to and including the next `end`, and returns it without `end`.
inline std::string_view take_up_to(std::string_view* text, char end) {
  const std::string_view found = text->substr(0, text->find(end));
  text->remove_prefix(std::min(found.size() + 1, text->size()));
  return found;
}
/// Removes the first line from `*text` and returns it without its LF.
inline std::string_view take_line(std::string_view* text) { return take_up_to(text, '\n'); }

}  // namespace hmmjit
