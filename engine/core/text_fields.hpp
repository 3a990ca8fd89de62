// Words and lines of text.
#pragma once

#include <algorithm>
#include <string_view>

namespace hmmjit {

inline constexpr std::string_view kBlanks = " \t\r\n\v\f";

inline bool is_blank(std::string_view text) { return text.find_first_not_of(kBlanks) == text.npos; }

inline std::string_view trim_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

inline std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return trim_end(text);
}

/// Removes the first word from `*text` and returns it; empty if there is none.
inline std::string_view take_word(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kBlanks), text->size()));
  const std::string_view word = text->substr(0, text->find_first_of(kBlanks));
  text->remove_prefix(word.size());
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
