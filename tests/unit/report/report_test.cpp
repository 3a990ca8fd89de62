// Layout of the reports on made-up results: widths, truncation, headers, empty lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "report/report_writer.hpp"
#include "report/stockholm.hpp"
#include "tests/support/folder.hpp"
#include "tests/unit/report/made_up.hpp"

namespace hmmjit {
namespace {

using test_support::lines_of;
using test_support::make_hit;
using test_support::make_result;
using ::testing::HasSubstr;

// The text of a model in one output.
std::string text_of(OutputKind kind, const ModelResult& result, const ReportOptions& options = {}) {
  const OutputSettings settings{options, {}, "author"};
  Outputs outputs;
  outputs.push_back(make_output(kind, result, settings));
  std::string text;
  EXPECT_TRUE(write_model(result, outputs, [&](OutputKind, std::string_view piece) -> Status {
    text += piece;
    return {};
  }));
  return text;
}

TEST(MainReport, TargetRow) {
  const auto lines =
      lines_of(text_of(OutputKind::kMain, make_result({make_hit("target", 0, 50.0f)})));
  ASSERT_GT(lines.size(), 7u);
  EXPECT_EQ(lines[5],
            "    ------- ------ -----    ------- ------ -----   ---- --  -------- -----------");
  // exp(-50) * 4 targets
  EXPECT_EQ(lines[6], "    7.7e-22   50.0   0.5    7.7e-22   50.0   0.0    1.0  1  target    ");
}

TEST(MainReport, WidthsComeFromAllCandidates) {
  Hit unreported = make_hit("a_candidate_with_a_long_name", 1, -1.0f);
  unreported.score.log_p = 0;
  unreported.accession = "ACC";
  Thresholds rules;
  rules.target.score = 10;
  FilterCounters counters;
  counters.targets = 4;
  ModelResult result;
  result.model = {"model", std::nullopt, std::nullopt, 8};
  result.hits = finish_hits({rules, false}, {make_hit("t", 0, 50.0f), unreported}, counters);
  EXPECT_EQ(result.hits.longest_name, 28u);
  EXPECT_EQ(result.hits.longest_shown, 3u);  // the accession replaces the long name
  const std::string out = text_of(OutputKind::kTargets, result);
  EXPECT_EQ(out.substr(0, 40), "t                            -          ");
}

TEST(MainReport, DescriptionsAreCutUnlessUnlimited) {
  Hit hit = make_hit("target", 0, 50.0f);
  hit.description = std::string(200, 'd');
  const ModelResult result = make_result({hit});
  const auto described = [&](int width) {
    const std::string row =
        lines_of(text_of(OutputKind::kMain, result, {.text_width = width})).at(6);
    return std::count(row.begin(), row.end(), 'd');
  };
  EXPECT_EQ(described(0), 200);
  EXPECT_EQ(described(120), 120 - 8 - 61);
  EXPECT_EQ(described(200), 200 - 8 - 61);
}

TEST(MainReport, AlignmentBlocks) {
  Hit hit = make_hit("target", 0, 50.0f);
  domain::Domain& domain = hit.score.domains[0];
  const std::string matches(50, 'M');
  domain.alignment.model = "ac" + std::string(45, '.') + "de";
  domain.alignment.match = std::string(49, ' ');
  domain.alignment.sequence = "AC" + std::string(45, 'x') + "DE";
  domain.alignment.pp = std::string(49, '9');
  domain.hmm_from = 2, domain.hmm_to = 5, domain.iali = 8, domain.jali = 56;
  ModelResult result = make_result({hit});
  result.model.accession.reset();
  // At least 40 columns.
  const std::string out = text_of(OutputKind::kMain, result, {.text_width = 40});
  EXPECT_THAT(out, HasSubstr("   model  2 ac...................................... 3 \n"));
  EXPECT_THAT(out, HasSubstr("  target  8 ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 47\n"));
  EXPECT_THAT(out, HasSubstr(" PP\n\n   model  4 .......de 5 \n"));
  EXPECT_THAT(out, HasSubstr("  target 48 xxxxxxxDE 56\n"));
}

TEST(MainReport, NothingFound) {
  const ModelResult result = make_result({});
  const std::string out = text_of(OutputKind::kMain, result);
  EXPECT_THAT(out, HasSubstr("-----------\n\n   [No hits detected that satisfy reporting "
                             "thresholds]\n\n\nDomain annotation"));
  EXPECT_THAT(out, HasSubstr("alignments):\n\n   [No targets detected that satisfy reporting "
                             "thresholds]\n\n\nInternal pipeline"));
  EXPECT_THAT(out, HasSubstr("Accession:   PF1\nScores"));
  EXPECT_THAT(out, HasSubstr("Passed MSV filter:                         0  (0); expected 0.1 "
                             "(0.02)\n"));
}

// Files of a search for one model. As many threads format parts of hits in memory.
std::map<std::string, std::string> written(ModelResult result, std::size_t& parts) {
  const test_support::TemporaryFolder folder;
  const auto path = [&](const char* name) { return folder.file(name); };
  const ReportPaths paths{path("main"),    path("alignment"), path("targets"),
                          path("domains"), path("pfam"),      path("tsv"),
                          path("json"),    path("a3m"),       path("target_tsv")};
  auto writer = ReportWriter::create(paths, {}, {}, "author", "# header\n");
  EXPECT_TRUE(writer);
  if (result.stored == nullptr) {
    result.prepared = (*writer)->prepare(result);
    parts = result.prepared->parts();
    std::vector<std::jthread> threads;
    for (std::size_t part = parts; part-- > 0;)
      threads.emplace_back([&, part] { result.prepared->make(part); });
  }
  EXPECT_TRUE((*writer)->receive(result));
  EXPECT_TRUE((*writer)->complete({}));
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::string text = test_support::read_file(entry.path());
    const std::string saved = folder.path().string();
    if (const std::size_t at = text.find(saved); at != text.npos) text.erase(at, saved.size());
    files[entry.path().filename().string()] = std::move(text);
  }
  return files;
}

TEST(ReportWriter, PartsAndLotsMakeTheTextMadeAtOnce) {
  for (const int count : {0, 1, 255, 256, 257, 1000}) {
    std::vector<Hit> hits;
    for (int i = 0; i < count; ++i) {
      hits.push_back(make_hit("target" + std::to_string(i), static_cast<std::uint64_t>(i),
                              60.0f - 0.05f * static_cast<float>(i)));
      if (count > 256 && (i % 7 == 0 || i % 5 == 0)) {
        // --pfamtblout lists a domain of one residue after its equals.
        auto& domains = hits.back().score.domains;
        domains.push_back(domains.front());
        domains.back().iali = domains.back().jali = 1;
      }
    }
    const ModelResult result = make_result(hits);
    std::size_t parts = 0;
    const auto files = written(result, parts);
    EXPECT_EQ(parts > 1, count > 256) << count;
    EXPECT_TRUE(files.at("main").starts_with("# header\n" + text_of(OutputKind::kMain, result) +
                                             (count == 0 ? "# No hits" : "# Alignment of ")))
        << count;
    EXPECT_TRUE(files.at("main").ends_with("\n[ok]\n")) << count;
    for (const auto& [name, kind] : {std::pair{"targets", OutputKind::kTargets},
                                     {"domains", OutputKind::kDomains},
                                     {"pfam", OutputKind::kPfam},
                                     {"json", OutputKind::kJson},
                                     {"a3m", OutputKind::kA3m},
                                     {"alignment", OutputKind::kAlignment}})
      EXPECT_THAT(files.at(name), HasSubstr(text_of(kind, result))) << count;
    for (const std::size_t lot : {std::size_t{1}, std::size_t{7}, hits.size() + 1})
      EXPECT_EQ(written(test_support::in_lots(result, lot), parts), files)
          << count << " in lots of " << lot;
  }
}

TEST(MainReport, InclusionLine) {
  const auto lines = lines_of(text_of(
      OutputKind::kMain, make_result({make_hit("good", 0, 50.0f), make_hit("poor", 1, 1.0f)})));
  ASSERT_GT(lines.size(), 9u);
  EXPECT_EQ(lines[7], "  ------ inclusion threshold ------");
}

TEST(Stockholm, InsertsAreSplitAndMeansTaken) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  domain::Alignment& wide = second.score.domains[0].alignment;
  wide = {"", "", "ac...dEfG", "", "ACtuv-YFG", "9876543.1"};
  wide.pp = "98765.543";
  const ModelResult result = make_result({first, second});
  const std::string out = text_of(OutputKind::kAlignment, result, {.text_width = 0});
  EXPECT_THAT(out, HasSubstr("#=GF ID model\n#=GF AC PF1\n#=GF AU author\n\n"));
  EXPECT_THAT(out, HasSubstr("#=GS one/5-10 DE [subseq from] one\n"));
  // The odd letter of an insertion goes right: three are split into one and two.
  EXPECT_THAT(out, HasSubstr("\none/5-10         -AC..t-YFG-\n"));
  EXPECT_THAT(out, HasSubstr("\ntwo/5-10         -ACtuv-YFG-\n"));
  EXPECT_THAT(out, HasSubstr("#=GR one/5-10 PP .98..*.765.\n"));
  EXPECT_THAT(out, HasSubstr("#=GC PP_cons     .98....654.\n"));
  EXPECT_THAT(out, HasSubstr("#=GC RF          xxx...xxxxx\n//\n"));
}

TEST(Stockholm, RepeatedNamesAreNumbered) {
  const ModelResult result = make_result({make_hit("one", 0, 50.0f), make_hit("one", 1, 49.0f)});
  const std::string out = text_of(OutputKind::kAlignment, result, {.text_width = 0});
  EXPECT_THAT(out, HasSubstr("\n0|one/5-10 "));
  EXPECT_THAT(out, HasSubstr("\n1|one/5-10 "));
}

// Numbers are as wide as the number of rows, as in hmmsearch's -A.
TEST(Stockholm, NumbersOfTenRowsHaveTwoDigits) {
  std::vector<Hit> hits;
  for (std::uint64_t i = 0; i < 10; ++i)
    hits.push_back(make_hit("one", i, 50.0f - static_cast<float>(i)));
  const ModelResult result = make_result(hits);
  const std::string out = text_of(OutputKind::kAlignment, result, {.text_width = 0});
  EXPECT_THAT(out, HasSubstr("\n00|one/5-10 "));
  EXPECT_THAT(out, HasSubstr("\n09|one/5-10 "));
}

// In means, the code 0 stands for 0.01, as in Easel: hmmsearch prints 4 for 0 and 7.
TEST(Stockholm, TheLeastPosteriorIsNotZero) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  first.score.domains[0].alignment.pp = "08*.765";
  second.score.domains[0].alignment.pp = "78*.065";
  const ModelResult result = make_result({first, second});
  const std::string out = text_of(OutputKind::kAlignment, result, {.text_width = 0});
  EXPECT_THAT(out, HasSubstr("#=GC PP_cons     .48..465."));
}

// With a query, inserted residues are upper case and gaps '-'; the query has no posteriors.
TEST(Stockholm, AQueryIsTheFirstRow) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  second.score.domains[0].alignment = {"", "", "ac...dEfG", "", "ACtuv-YFG", "98765.543"};
  const ModelResult result = make_result({first, second});
  for (const std::size_t targets : {std::size_t{1}, kAllTargets}) {
    AlignmentColumns columns(
        result.model,
        {.targets = targets, .upper_case = true, .query_name = "query", .query = "MACDEFGH"});
    ASSERT_TRUE(columns.measure(result.hits.hits));
    EXPECT_EQ(*columns.finish(), targets == 1 ? 2u : 3u);
    StockholmRecord record(columns, "query-i1", 0, "author");
    ASSERT_TRUE(record.add(result.hits.hits));
    std::string out;
    ASSERT_TRUE(record.write([&](std::string_view text) -> Status {
      out += text;
      return {};
    }));
    EXPECT_THAT(out, HasSubstr("#=GF ID query-i1\n"));
    EXPECT_THAT(
        out,
        HasSubstr(targets == 1 ? "\nquery            MAC-DEFGH\none/5-10         -ACT-YFG-\n"
                               : "\nquery            MAC---DEFGH\none/5-10         -AC--T-YFG-\n"));
  }
}

// Domains are listed by their own score, equal ones by name, not in the order of targets.
TEST(PfamTable, DomainsOfEqualScoreAreInOrderOfNames) {
  Hit first = make_hit("zebra", 0, 60.0f), second = make_hit("apple", 1, 50.0f);
  for (Hit* hit : {&first, &second}) {
    hit->score.domains[0].bits = 30;
    hit->score.domains[0].log_p = -30;
  }
  const std::string out = text_of(OutputKind::kPfam, make_result({first, second}));
  const std::size_t domains = out.find("# Domain scores");
  ASSERT_NE(domains, out.npos);
  EXPECT_LT(out.find("\nzebra"), out.find("\napple"));
  EXPECT_LT(out.find("\napple", domains), out.find("\nzebra", domains));
}

}  // namespace
}  // namespace hmmjit
