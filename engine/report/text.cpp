#include "report/text.hpp"

#include <array>
#include <charconv>

namespace hmmjit::text {
namespace {

// The largest double has 309 digits before the point.
using Buffer = std::array<char, 400>;

void number(std::string& out, double value, int width, std::chars_format format, int precision) {
  Buffer buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision).ptr;
  right(out, {buffer.data(), end}, static_cast<std::size_t>(width));
}

}  // namespace

void fixed(std::string& out, double value, int width, int precision) {
  number(out, value, width, std::chars_format::fixed, precision);
}

void general(std::string& out, double value, int width, int precision) {
  number(out, value, width, std::chars_format::general, precision);
}

void integer(std::string& out, std::int64_t value, std::size_t width) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  right(out, {buffer.data(), end}, width);
}

void left(std::string& out, std::string_view text, std::size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

void right(std::string& out, std::string_view text, std::size_t width) {
  if (text.size() < width) out.append(width - text.size(), ' ');
  out += text;
}

void blanks(std::string& out, std::size_t count) { out.append(count, ' '); }

}  // namespace hmmjit::text
