// Machine-readable outputs on made-up results: escaping, exact numbers, empty lists.
#include "report/records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/exact_text.hpp"
#include "report/html_page.hpp"
#include "report/scan.hpp"
#include "report/stockholm.hpp"
#include "tests/unit/report/made_up.hpp"

namespace hmmjit {
namespace {

using test_support::make_hit;
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
}

// Names that have to be escaped.
ModelResult marked_result(std::vector<Hit> hits, const Thresholds& rules = {}) {
  ModelResult result = test_support::make_result(std::move(hits), rules);
  result.index = 3;
  result.model = {"mo<del>", "PF1", std::nullopt, 8, "xACDEFGy"};
  return result;
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  for (const std::string& line : test_support::lines_of(text)) lines.push_back(Json::parse(line));
  return lines;
}

void append_json(std::string& out, const ModelResult& result, bool alignments) {
  append_json_query(out, result);
  append_json_targets(out, result, alignments);
}

TEST(Records, JsonHoldsTheExactValues) {
  Hit hit = make_hit("quo\"te", 1, 50.25f);
  hit.description = "tab\there";
  std::string out;
  append_json(out, marked_result({hit}), true);
  const auto lines = json_lines(out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["name"], "mo<del>");
  EXPECT_EQ(lines[0]["description"], nullptr);
  EXPECT_EQ(lines[0]["targets_reported"], 1);
  EXPECT_EQ(lines[1]["name"], "quo\"te");
  EXPECT_EQ(lines[1]["description"], "tab\there");
  EXPECT_EQ(lines[1]["model_index"], 3);
  EXPECT_EQ(lines[1]["evalue"].get<double>(), std::exp(-50.25) * 4);
  EXPECT_EQ(lines[1]["score"].get<double>(), 50.25);
  const Json& domain = lines[1]["domains"][0];
  EXPECT_EQ(domain["c_evalue"].get<double>(), std::exp(-50.25));
  EXPECT_EQ(domain["alignment"]["target"], "ACt-YFG");
  EXPECT_EQ(domain["env_to"], 20);
  std::string without;
  append_json(without, marked_result({hit}), false);
  EXPECT_FALSE(json_lines(without)[1]["domains"][0].contains("alignment"));
  std::string none;
  append_json(none, marked_result({}), true);
  EXPECT_EQ(json_lines(none).size(), 1u);
}

TEST(Records, RunLineSumsUp) {
  RunTotals totals;
  totals.add(marked_result({make_hit("a", 0, 50), make_hit("b", 1, 40)}));
  totals.add(marked_result({make_hit("c", 0, 1)}));
  std::string out;
  append_json_run(out, {}, totals);
  const Json line = Json::parse(out);
  EXPECT_EQ(line["models"], 2);
  EXPECT_EQ(line["targets_reported"], 3);
  EXPECT_EQ(line["targets_included"], 2);
  EXPECT_EQ(line["targets"], 4);
}

TEST(Records, TsvRowsHaveTheColumnsOfTheHeader) {
  std::string head, rows;
  append_tsv_header(head);
  Thresholds rules;
  rules.domain.score = 45;  // the second target keeps no domain
  Hit odd = make_hit("odd\tname", 0, 50);
  append_tsv(rows, marked_result({odd, make_hit("b", 1, 40)}, rules));
  const auto tabs = [](const std::string& line) { return std::ranges::count(line, '\t'); };
  EXPECT_EQ(std::ranges::count(rows, '\n'), 1);
  EXPECT_EQ(tabs(rows), tabs(head));
  EXPECT_THAT(rows, HasSubstr("odd name\t"));
  std::string target_head, targets;
  const RecordOptions of_file{.kept = true, .target_file = "a.fasta"};
  append_target_tsv_header(target_head, of_file);
  append_target_tsv(targets, marked_result({odd, make_hit("#b", 1, 40)}, rules), of_file);
  EXPECT_EQ(std::ranges::count(targets, '\n'), 2);
  EXPECT_EQ(tabs(targets), 2 * tabs(target_head));
  EXPECT_THAT(targets, HasSubstr("\ta.fasta\n\"#b\"\t"));  // '#' would make it a comment
}

TEST(A3m, RowsHaveTheModelsColumns) {
  std::string out;
  EXPECT_EQ(append_a3m(out, marked_result({})), 0u);
  EXPECT_EQ(out, "");
  const ModelResult result = marked_result({make_hit("t", 0, 50), make_hit("weak", 1, 1)});
  EXPECT_EQ(append_a3m(out, result), 1u);
  EXPECT_EQ(out,
            "#mo<del> PF1\n>mo<del>_consensus\nXACDEFGY\n"
            ">t/5-10\n-ACt-YFG-\n");
}

TEST(ScanTables, ListsModelsByTarget) {
  Thresholds rules;
  rules.Z = 2;
  const auto searched = [&](std::size_t index, std::string name, std::vector<Hit> hits) {
    ModelResult result = marked_result(std::move(hits), rules);
    result.index = index;
    result.model.name = std::move(name);
    result.model.M = 10 + static_cast<int>(index);
    return result;
  };
  ScanTables tables(rules);
  ASSERT_TRUE(
      tables.add(searched(0, "first", {make_hit("late", 7, 20), make_hit("early", 2, 30)})));
  ASSERT_TRUE(tables.add(searched(1, "second", {make_hit("late", 7, 25)})));
  std::string targets, domains;
  const auto to = [](std::string& text) {
    return [&text](std::string_view more) -> Status {
      text += more;
      return {};
    };
  };
  ASSERT_TRUE(tables.write({to(targets), to(domains)}));
  std::vector<std::string> rows = test_support::lines_of(domains);
  std::erase_if(rows, [](const std::string& line) { return line.starts_with('#'); });
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0], testing::StartsWith("first                PF1           10 early "));
  EXPECT_THAT(rows[1], testing::StartsWith("second               PF1           11 late "));
  EXPECT_THAT(rows[2], testing::StartsWith("first                PF1           10 late "));
  // Two models reported for "late": exp(-25) * 2 conditional and independent.
  EXPECT_THAT(rows[1], HasSubstr("  60   2.8e-11   25.0   0.5   1   1   2.8e-11   2.8e-11 "));
  // One for "early": its domain search space is 1.
  EXPECT_THAT(rows[0], HasSubstr("   1.9e-13   30.0   0.5   1   1   9.4e-14   1.9e-13 "));
}

TEST(HtmlPage, EscapesWhateverComesFromFiles) {
  Page page;
  page.title = "<script>alert(1)</script>";
  page.run.emplace_back("command", "a & b \"c\"");
  page.models.push_back({"m</title>", "acc<", "de&sc", 30, 1, 1, {}, {}, {}, {}, {}});
  PageTarget& target = page.targets[0];
  target = {"t<b>", "", "\"quoted\" & 'so on'", 100, 0, {}};
  PageHit& hit = target.hits.emplace_back();
  PageDomain& domain = hit.domains.emplace_back();
  domain.env_from = 1, domain.env_to = 100;
  domain.model = domain.match = domain.target = domain.pp = "<AC>";
  page.left_out = 2;
  const std::string html = make_html_page(page);
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("a &amp; b &quot;c&quot;"));
  EXPECT_THAT(html, HasSubstr("The best 1 of 3 selected sequences"));
  // All other text from files is compressed, so browsers cannot interpret it.
  for (const char* id : {"data", "alignments"}) {
    const std::size_t tag = html.find(std::string("id=\"") + id + "\">");
    ASSERT_NE(tag, html.npos);
    const std::size_t from = html.find('>', tag) + 1, to = html.find('<', from);
    const std::string packed = html.substr(from, to - from);
    EXPECT_GT(packed.size(), 20u);
    EXPECT_EQ(packed.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789+/=\n"),
              packed.npos);
    EXPECT_EQ(html.substr(to, 9), "</script>");
  }
}

}  // namespace
}  // namespace hmmjit
