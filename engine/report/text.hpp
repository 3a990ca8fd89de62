// printf's number and field formats, without a locale: appended to strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hmmjit::text {

/// %{width}.{precision}f
void fixed(std::string& out, double value, int width, int precision);
/// %{width}.{precision}g
void general(std::string& out, double value, int width, int precision);
/// %{width}d
void integer(std::string& out, std::int64_t value, std::size_t width);
/// %-{width}s and %{width}s; widths count bytes, as printf does.
void left(std::string& out, std::string_view text, std::size_t width);
void right(std::string& out, std::string_view text, std::size_t width);
void blanks(std::string& out, std::size_t count);

/// An E-value, %9.2g, and scores: %6.1f, %5.1f.
inline void e_value(std::string& out, double value) { general(out, value, 9, 2); }
inline void score(std::string& out, double value) { fixed(out, value, 6, 1); }
inline void bias(std::string& out, double value) { fixed(out, value, 5, 1); }
/// The three, with a blank between.
inline void scores(std::string& out, double e, double bits, double bias_bits) {
  e_value(out, e);
  out += ' ';
  score(out, bits);
  out += ' ';
  bias(out, bias_bits);
}

/// Tables write a dash if there is no text.
inline std::string_view or_dash(std::string_view text) {
  return text.empty() ? std::string_view("-") : text;
}

}  // namespace hmmjit::text
