#include "report/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

namespace hmmjit {
namespace {

std::string printf_text(const char* format, int width, int precision, double value) {
  std::array<char, 512> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), format, width, precision, value);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

// Compares with the C library's "%9.2g".
void expect_as_printf(double value) {
  for (const auto& [width, precision] : {std::pair{9, 2}, {0, 6}, {0, 2}}) {
    std::string text;
    text::append(text, text::general(value, width, precision));
    ASSERT_EQ(text, printf_text("%*.*g", width, precision, value)) << std::hexfloat << value;
  }
  for (const auto& [width, precision] : {std::pair{6, 1}, {5, 1}, {4, 2}, {15, 0}}) {
    std::string text;
    text::append(text, text::fixed(value, width, precision));
    ASSERT_EQ(text, printf_text("%*.*f", width, precision, value)) << std::hexfloat << value;
  }
}

TEST(Text, NumbersAsPrintf) {
  using Limits = std::numeric_limits<double>;
  constexpr double kValues[] = {
      0.0,       -0.0,  0.05, 0.15,     0.25,  0.35,   0.45,    -0.05,    -0.04,    0.5,
      1.5,       2.5,   9.95, 9.949999, 99.5,  0.995,  0.00995, 1e-5,     9.95e-5,  1e-4,
      9.9999e-5, 100.0, 99.0, 1e10,     1e300, -1e300, 5e-324,  123456.5, 1234567.0};
  for (const double value : kValues) expect_as_printf(value);
  for (const double value :
       {Limits::min(), Limits::max(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    expect_as_printf(value);
}

TEST(Text, RandomNumbersAsPrintf) {
  std::mt19937_64 random(20240607);
  std::uniform_real_distribution<double> exponent(-310, 20), score(-300, 3000);
  for (int i = 0; i < 20000; ++i) {
    expect_as_printf(std::pow(10.0, exponent(random)));
    expect_as_printf(static_cast<float>(score(random)));
    expect_as_printf(std::round(score(random) * 20) / 20);  // many exact ties in the last digit
    const auto any = std::bit_cast<double>(random());
    if (!std::isnan(any)) expect_as_printf(any);
  }
}

TEST(Text, FieldsCountBytes) {
  std::string text;
  text::append(text, text::left("\xc3\xa9t\xc3\xa9", 7), '|',  // five bytes, three characters
               text::right("ab", 4), '|', text::left("longer than the field", 3), '|',
               text::integer(-42, 5));
  EXPECT_EQ(text, "\xc3\xa9t\xc3\xa9  |  ab|longer than the field|  -42");
}

}  // namespace
}  // namespace hmmjit
