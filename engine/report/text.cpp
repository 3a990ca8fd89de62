#include "report/text.hpp"

#include <array>

namespace hmmjit::text {

void append_number(std::string& out, double value, int width, std::chars_format format,
                   int precision) {
  std::array<char, 400> buffer;  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision).ptr;
  append_right(out, {buffer.data(), end}, static_cast<std::size_t>(width));
}

void append_integer(std::string& out, std::int64_t value, std::size_t width) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  append_right(out, {buffer.data(), end}, width);
}

void append_left(std::string& out, std::string_view text, std::size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

void append_right(std::string& out, std::string_view text, std::size_t width) {
  if (text.size() < width) out.append(width - text.size(), ' ');
  out += text;
}

}  // namespace hmmjit::text
