// Lines of text tables: fields in printf's formats, without a locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace hmmjit::text {

void append_number(std::string& out, double value, int width, std::chars_format format,
                   int precision);
void append_integer(std::string& out, std::int64_t value, std::size_t width);
void append_left(std::string& out, std::string_view text, std::size_t width);
void append_right(std::string& out, std::string_view text, std::size_t width);

// Fields are functions that append text. Strings that they refer to must outlive them.

/// %{width}.{precision}f
inline auto fixed(double value, int width, int precision) {
  return [=](std::string& out) {
    append_number(out, value, width, std::chars_format::fixed, precision);
  };
}
/// %{width}.{precision}g
inline auto general(double value, int width, int precision) {
  return [=](std::string& out) {
    append_number(out, value, width, std::chars_format::general, precision);
  };
}
/// %{width}d
inline auto integer(std::int64_t value, std::size_t width) {
  return [=](std::string& out) { append_integer(out, value, width); };
}
/// %-{width}s and %{width}s; widths count bytes, as printf does.
inline auto left(std::string_view text, std::size_t width) {
  return [=](std::string& out) { append_left(out, text, width); };
}
inline auto right(std::string_view text, std::size_t width) {
  return [=](std::string& out) { append_right(out, text, width); };
}
inline auto blanks(std::size_t count) { return left({}, count); }

/// Appends fields, texts and characters.
template <typename... Fields>
void append(std::string& out, const Fields&... fields) {
  const auto put = [&out]<typename Field>(const Field& field) {
    if constexpr (std::is_invocable_v<Field, std::string&>) {
      field(out);
    } else {
      out += field;
    }
  };
  (put(fields), ...);
}
/// Appends a line with blanks between its fields.
template <typename First, typename... Fields>
void append_line(std::string& out, const First& first, const Fields&... fields) {
  append(out, first);
  (append(out, ' ', fields), ...);
  out += '\n';
}

/// An E-value as %9.2g, and scores as %6.1f and %5.1f.
inline auto e_value(double value) { return general(value, 9, 2); }
inline auto score(double value) { return fixed(value, 6, 1); }
inline auto bias(double value) { return fixed(value, 5, 1); }
/// The three values, separated by blanks.
inline auto scores(double e, double bits, double bias_bits) {
  return [=](std::string& out) { append(out, e_value(e), ' ', score(bits), ' ', bias(bias_bits)); };
}

/// A domain's range in a sequence of `length`: brackets mark ends that it reaches.
inline auto range(int from, int to, std::int64_t length, std::size_t width) {
  return [=](std::string& out) {
    append(out, integer(from, width), ' ', integer(to, width), ' ', from == 1 ? '[' : '.',
           to == length ? ']' : '.');
  };
}
/// The beginning of a line of the pipeline's statistics.
inline auto count(std::string_view label, std::uint64_t value) {
  return [=](std::string& out) {
    append(out, left(label, 29), integer(static_cast<std::int64_t>(value), 15), "  (");
  };
}

/// Tables write a dash if there is no text.
inline std::string_view or_dash(std::string_view text) {
  return text.empty() ? std::string_view("-") : text;
}

}  // namespace hmmjit::text
