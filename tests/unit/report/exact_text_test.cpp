// Escaped texts and exact numbers of machine-readable outputs.
#include "core/exact_text.hpp"

#include <gmock/gmock.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace hmmjit {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

template <typename Function, typename Value>
std::string made(Function function, Value value) {
  std::string out;
  function(out, value);
  return out;
}
std::string json_of(std::string_view value) { return made(text::json_string, value); }
std::string html_of(std::string_view value) { return made(text::html_text, value); }

TEST(ExactText, NumbersReadBackAsTheSameValue) {
  for (const double value : {0.1, 1e-300, 5e-324, 123456789.125, -0.0, 1.0 / 3}) {
    std::string out;
    text::exact(out, value);
    double back = 0;
    std::from_chars(out.data(), out.data() + out.size(), back);
    EXPECT_EQ(back, value) << out;
    EXPECT_EQ(Json::parse(out).get<double>(), value) << out;
  }
  std::string out;
  text::exact(out, 0.1f);
  EXPECT_EQ(out, "0.1");  // not the neighbouring double
  out.clear();
  text::json_number(out, std::numeric_limits<double>::infinity());
  text::json_number(out, std::nanf(""));
  EXPECT_EQ(out, "nullnull");
}

TEST(ExactText, JsonStringsAreAlwaysJson) {
  for (int c = 0; c < 256; ++c) {
    const std::string one(1, static_cast<char>(c));
    const std::string back = Json::parse(json_of("<" + one + ">")).get<std::string>();
    EXPECT_EQ(back, "<" + (c < 0x80 ? one : std::string("\xef\xbf\xbd")) + ">") << c;
  }
  for (const char* good : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\xa7\xac", "plain"})
    EXPECT_EQ(Json::parse(json_of(good)).get<std::string>(), good);
  // Overlong, surrogate, beyond U+10FFFF, truncated.
  for (const char* bad :
       {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x9f"}) {
    const std::string back = Json::parse(json_of(bad)).get<std::string>();
    EXPECT_THAT(back, HasSubstr("\xef\xbf\xbd")) << bad;
  }
}

TEST(ExactText, HtmlAndTsvEscape) {
  EXPECT_EQ(html_of("a<b>&\"c'\x01\xff"), "a&lt;b&gt;&amp;&quot;c&#39;\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(made(text::tsv_field, std::string_view("a\tb\\c\nd\re'")), "a b\\c d e'");
  EXPECT_EQ(made(text::tsv_field, std::string_view("\"a\" \xe9 \"")),
            "\"\"\"a\"\" \xef\xbf\xbd \"\"\"");
  EXPECT_EQ(made(text::tsv_field, std::string_view("#b")), "\"#b\"");  // else a comment
}

}  // namespace
}  // namespace hmmjit
