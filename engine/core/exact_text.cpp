#include "core/exact_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace hmmjit::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

template <typename Number>
void shortest(std::string& out, Number value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

// Length of the UTF-8 character at the start of `text`, 0 if there is none (RFC 3629: no
// overlong forms, no surrogates, nothing beyond U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned least = first == 0xe0 ? 0xa0 : 0x80, most = first == 0xed ? 0x9f : 0xbf;
    return follows(1, least, most) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned least = first == 0xf0 ? 0x90 : 0x80, most = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, least, most) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Calls `ascii` for ASCII bytes and copies other characters.
template <typename Ascii>
void escape(std::string& out, std::string_view value, Ascii ascii) {
  while (!value.empty()) {
    const std::size_t length = utf8_length(value);
    if (length == 1) {
      ascii(value.front());
    } else if (length == 0) {
      out += kReplacement;
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
}

template <typename Number>
void number_or_null(std::string& out, Number value) {
  if (std::isfinite(value)) {
    shortest(out, value);
  } else {
    out += "null";
  }
}

}  // namespace

void exact(std::string& out, double value) { shortest(out, value); }
void exact(std::string& out, float value) { shortest(out, value); }
void json_number(std::string& out, double value) { number_or_null(out, value); }
void json_number(std::string& out, float value) { number_or_null(out, value); }

void json_string(std::string& out, std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  escape(out, value, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  });
  out += '"';
}

void tsv_field(std::string& out, std::string_view value) {
  const bool quoted = value.find('"') != value.npos || value.starts_with('#');
  if (quoted) out += '"';
  escape(out, value, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"') out += '"';
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  });
  if (quoted) out += '"';
}

void html_text(std::string& out, std::string_view value) {
  escape(out, value, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if ((byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7f) {
      out += kReplacement;
    } else {
      out += c;
    }
  });
}

}  // namespace hmmjit::text
