#include "io/c_numbers.hpp"

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace hmmjit {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

locale_t c_locale() {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace

double c_atof(std::string_view text) {
  // Up to 15 digits the digits are exact in a double and so is the power of ten, hence one
  // correctly rounded division gives the nearest double (Clinger, PLDI 1990).
  const char* p = text.data();
  const char* end = p + text.size();
  bool negative = p < end && *p == '-';
  if (negative) ++p;
  std::uint64_t digits = 0;
  int count = 0, fraction = 0;
  while (p < end && static_cast<unsigned char>(*p - '0') < 10) {
    digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
    ++count;
  }
  if (p < end && *p == '.') {
    ++p;
    while (p < end && static_cast<unsigned char>(*p - '0') < 10) {
      digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
      ++fraction;
    }
  }
  if (p == end && count + fraction > 0 && count + fraction <= 15) {
    double value = static_cast<double>(digits) / kPowersOfTen[fraction];
    return negative ? -value : value;
  }
  return ::strtod_l(std::string(text).c_str(), nullptr, c_locale());
}

int c_atoi(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))) ++i;
  bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  std::int64_t value = 0;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = value * 10 + (text[i] - '0');
    if (value > kMost) value = kMost + (negative ? 1 : 0);
  }
  return static_cast<int>(negative ? -value : value);
}

}  // namespace hmmjit
