// Layout of the reports on results made by hand: widths, cuts, headers, empty lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "report/a3m.hpp"
#include "report/main_report.hpp"
#include "report/report_writer.hpp"
#include "report/stockholm.hpp"
#include "report/tables.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

using ::testing::HasSubstr;

Hit make_hit(std::string name, std::uint64_t index, float bits) {
  Hit hit;
  hit.name = std::move(name);
  hit.index = index;
  hit.length = 60;
  hit.score.bits = bits;
  hit.score.pre_bits = bits + 0.5f;
  hit.score.log_p = -static_cast<double>(bits);
  hit.score.expected_domains = 1.04f;
  hit.score.regions = hit.score.envelopes = 1;
  domain::Domain& domain = hit.score.domains.emplace_back();
  domain.ienv = 3, domain.jenv = 20, domain.iali = 5, domain.jali = 11;
  domain.hmm_from = 2, domain.hmm_to = 7;
  domain.bits = bits;
  domain.log_p = -static_cast<double>(bits);
  domain.accuracy_sum = 5.0f;
  domain.alignment.model = "ac.dEfG";
  domain.alignment.match = "a  d Ef";
  domain.alignment.sequence = "ACt-YFG";
  domain.alignment.pp = "98*.765";
  return hit;
}

ModelResult make_result(std::vector<Hit> hits) {
  ModelResult result;
  result.model = {"model", "PF1", std::nullopt, 8};
  FilterCounters counters;
  counters.targets = 4;
  counters.residues = 240;
  result.hits = finish_hits({Thresholds{}, false}, std::move(hits), counters);
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(MainReport, TargetRow) {
  std::string out;
  append_target_scores(out, make_result({make_hit("target", 0, 50.0f)}).hits, {});
  const auto lines = lines_of(out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3],
            "    ------- ------ -----    ------- ------ -----   ---- --  -------- -----------");
  // exp(-50) * 4 targets
  EXPECT_EQ(lines[4], "    7.7e-22   50.0   0.5    7.7e-22   50.0   0.0    1.0  1  target    ");
}

TEST(MainReport, WidthsComeFromAllCandidates) {
  Hit unreported = make_hit("a_candidate_with_a_long_name", 1, -1.0f);
  unreported.score.log_p = 0;
  unreported.accession = "ACC";
  Thresholds rules;
  rules.target.score = 10;
  FilterCounters counters;
  counters.targets = 4;
  const HitList hits = finish_hits({rules, false}, {make_hit("t", 0, 50.0f), unreported}, counters);
  EXPECT_EQ(hits.longest_name, 28u);
  EXPECT_EQ(hits.longest_shown, 3u);  // the accession stands in for the long name
  std::string out;
  append_target_table(out, {"model", std::nullopt, std::nullopt, 8}, hits);
  EXPECT_EQ(out.substr(0, 40), "t                            -          ");
}

TEST(MainReport, DescriptionsAreCutUnlessUnlimited) {
  Hit hit = make_hit("target", 0, 50.0f);
  hit.description = std::string(200, 'd');
  const ModelResult result = make_result({hit});
  const auto described = [&](int width) {
    std::string out;
    append_target_scores(out, result.hits, {.text_width = width});
    return std::count(out.begin() + static_cast<std::ptrdiff_t>(out.rfind("target")), out.end(),
                      'd');
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
  std::string out;
  append_domain_annotation(out, {"model", std::nullopt, std::nullopt, 8}, make_result({hit}).hits,
                           {.text_width = 40}, 0, 1);  // floor of 40 columns
  EXPECT_THAT(out, HasSubstr("   model  2 ac...................................... 3 \n"));
  EXPECT_THAT(out, HasSubstr("  target  8 ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 47\n"));
  EXPECT_THAT(out, HasSubstr(" PP\n\n   model  4 .......de 5 \n"));
  EXPECT_THAT(out, HasSubstr("  target 48 xxxxxxxDE 56\n"));
}

TEST(MainReport, NothingFound) {
  const ModelResult result = make_result({});
  std::string out;
  append_model_report(out, result, {}, {}, {});
  EXPECT_THAT(out, HasSubstr("-----------\n\n   [No hits detected that satisfy reporting "
                             "thresholds]\n\n\nDomain annotation"));
  EXPECT_THAT(out, HasSubstr("alignments):\n\n   [No targets detected that satisfy reporting "
                             "thresholds]\n\n\nInternal pipeline"));
  EXPECT_THAT(out, HasSubstr("Accession:   PF1\nScores"));
  EXPECT_THAT(out, HasSubstr("Passed MSV filter:                         0  (0); expected 0.1 "
                             "(0.02)\n"));
}

// Files of a search for one model, whose text is made in parts by as many threads.
std::map<std::string, std::string> written(ModelResult result, std::size_t& parts) {
  const test_support::TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const ReportPaths paths{path("main"), path("alignment"), path("targets"), path("domains"),
                          path("pfam"), path("tsv"),       path("json"),    path("a3m")};
  auto writer = ReportWriter::create(paths, {}, {}, "author", "# header\n");
  EXPECT_TRUE(writer);
  result.prepared = (*writer)->prepare(result);
  parts = result.prepared->parts();
  std::vector<std::jthread> threads;
  for (std::size_t part = parts; part-- > 0;)
    threads.emplace_back([&, part] { result.prepared->make(part); });
  threads.clear();
  EXPECT_TRUE((*writer)->receive(result));
  EXPECT_TRUE((*writer)->complete({}));
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream in(entry.path());
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

TEST(ReportWriter, TextMadeInPartsIsTheTextMadeAtOnce) {
  for (const int count : {0, 1, 255, 256, 257, 1000}) {
    std::vector<Hit> hits;
    for (int i = 0; i < count; ++i) {
      hits.push_back(make_hit("target" + std::to_string(i), static_cast<std::uint64_t>(i),
                              60.0f - 0.05f * static_cast<float>(i)));
      if (count > 256 && i % 7 == 0)
        hits.back().score.domains.push_back(hits.back().score.domains.front());
    }
    const ModelResult result = make_result(hits);
    std::size_t parts = 0;
    const auto files = written(result, parts);
    EXPECT_EQ(parts > 1, count > 256) << count;
    std::string main, targets, domains, pfam, a3m, alignment;
    append_model_report(main, result, {}, {}, {result.cpu_seconds, 0, result.seconds});
    append_target_table(targets, result.model, result.hits);
    append_domain_table(domains, result.model, result.hits);
    append_pfam_table(pfam, result.hits);
    append_a3m(a3m, result.model, result.hits);
    append_stockholm(alignment, result.model, result.hits, 200, "author");
    EXPECT_TRUE(files.at("main").starts_with("# header\n" + main +
                                             (count == 0 ? "# No hits" : "# Alignment of ")))
        << count;
    EXPECT_TRUE(files.at("main").ends_with("\n[ok]\n")) << count;
    EXPECT_THAT(files.at("targets"), HasSubstr(targets)) << count;
    EXPECT_THAT(files.at("domains"), HasSubstr(domains)) << count;
    EXPECT_THAT(files.at("pfam"), HasSubstr(pfam)) << count;
    EXPECT_EQ(files.at("a3m"), a3m) << count;
    EXPECT_EQ(files.at("alignment"), alignment) << count;
  }
}

TEST(MainReport, InclusionLine) {
  std::string out;
  append_target_scores(
      out, make_result({make_hit("good", 0, 50.0f), make_hit("poor", 1, 1.0f)}).hits, {});
  const auto lines = lines_of(out);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[5], "  ------ inclusion threshold ------");
}

TEST(Stockholm, InsertsAreSplitAndMeansTaken) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  domain::Alignment& wide = second.score.domains[0].alignment;
  wide = {"", "", "ac...dEfG", "", "ACtuv-YFG", "9876543.1"};
  wide.pp = "98765.543";
  const ModelResult result = make_result({first, second});
  std::string out;
  EXPECT_EQ(append_stockholm(out, result.model, result.hits, 0, "author"), 2u);
  EXPECT_THAT(out, HasSubstr("#=GF ID model\n#=GF AC PF1\n#=GF AU author\n\n"));
  EXPECT_THAT(out, HasSubstr("#=GS one/5-11 DE [subseq from] one\n"));
  // One letter of an odd insert goes right; three letters split one to two.
  EXPECT_THAT(out, HasSubstr("\none/5-11         -AC..t-YFG-\n"));
  EXPECT_THAT(out, HasSubstr("\ntwo/5-11         -ACtuv-YFG-\n"));
  EXPECT_THAT(out, HasSubstr("#=GR one/5-11 PP .98..*.765.\n"));
  EXPECT_THAT(out, HasSubstr("#=GC PP_cons     .98....654.\n"));
  EXPECT_THAT(out, HasSubstr("#=GC RF          xxx...xxxxx\n//\n"));
}

TEST(Stockholm, RepeatedNamesAreNumbered) {
  const ModelResult result = make_result({make_hit("one", 0, 50.0f), make_hit("one", 1, 49.0f)});
  std::string out;
  append_stockholm(out, result.model, result.hits, 0, "author");
  EXPECT_THAT(out, HasSubstr("\n0|one/5-11 "));
  EXPECT_THAT(out, HasSubstr("\n1|one/5-11 "));
}

// Numbers are as wide as the number of rows, which none of them reaches, as in hmmsearch's -A.
TEST(Stockholm, NumbersOfTenRowsHaveTwoDigits) {
  std::vector<Hit> hits;
  for (std::uint64_t i = 0; i < 10; ++i)
    hits.push_back(make_hit("one", i, 50.0f - static_cast<float>(i)));
  const ModelResult result = make_result(hits);
  std::string out;
  EXPECT_EQ(append_stockholm(out, result.model, result.hits, 0, "author"), 10u);
  EXPECT_THAT(out, HasSubstr("\n00|one/5-11 "));
  EXPECT_THAT(out, HasSubstr("\n09|one/5-11 "));
}

// The code 0 stands for 0.01 in means, as Easel decodes it: hmmsearch prints 4 for 0 and 7.
TEST(Stockholm, TheLeastPosteriorIsNotZero) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  first.score.domains[0].alignment.pp = "08*.765";
  second.score.domains[0].alignment.pp = "78*.065";
  const ModelResult result = make_result({first, second});
  std::string out;
  append_stockholm(out, result.model, result.hits, 0, "author");
  EXPECT_THAT(out, HasSubstr("#=GC PP_cons     .48..465."));
}

// A record written in passes over the hits, and its rows, are those made at once: with a query
// residues of inserts are in upper case, too.
TEST(Stockholm, WhatIsWrittenInPassesIsTheSame) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  second.accession = "ACC";
  second.score.domains[0].alignment = {"", "", "ac...dEfG", "", "ACtuv-YFG", "98765.543"};
  const std::string residues = "MACDEFGH";
  for (const std::size_t targets : {std::size_t{1}, kAllTargets}) {
    for (const bool repeated : {false, true}) {
      if (repeated) second.name = "one";
      const ModelResult result = make_result({first, second});
      for (const bool with_query : {false, true}) {
        for (const std::size_t columns : {0u, 3u}) {
          SCOPED_TRACE(testing::Message() << targets << ' ' << repeated << with_query << columns);
          const HitAlignment alignment =
              with_query ? align_with_query(result.hits, result.model.M, "query", residues, targets)
                         : align_hits(result.hits, result.model.M, targets);
          std::string at_once, in_passes;
          append_stockholm(at_once, with_query ? "query-i1" : result.model.name, result.model,
                           alignment, columns, "author");
          std::optional<AlignedQuery> query;
          if (with_query) query = AlignedQuery{"query-i1", "query", residues};
          auto streamed =
              StreamedStockholm::create(result.model, columns, "author", targets, query);
          ASSERT_TRUE(streamed);
          const StreamedStockholm::HitPass pass = [&](const auto& use) -> Status {
            for (const Hit& hit : result.hits.hits) HMMJIT_TRY(use(hit));
            return {};
          };
          ASSERT_TRUE(pass([&](const Hit& hit) { return streamed->measure(hit); }));
          EXPECT_EQ(*streamed->end_measuring(), alignment.rows.size());
          std::size_t row = 0;
          ASSERT_TRUE(
              streamed->for_each_row(pass, [&](const std::string& name, const std::string& text) {
                ASSERT_LT(row, alignment.rows.size());
                EXPECT_EQ(name, alignment.rows[row].name);
                EXPECT_EQ(text, alignment.rows[row++].sequence);
              }));
          EXPECT_EQ(row, alignment.rows.size());
          ASSERT_TRUE(streamed->write(pass, [&](std::string_view text) -> Status {
            in_passes += text;
            return {};
          }));
          EXPECT_EQ(in_passes, at_once);
          // What the rows are, by hand: inserts are split, and in upper case beside a query.
          std::string row_by_hand = targets == 1 ? "-ACt-YFG-" : "-AC..t-YFG-";
          if (with_query) row_by_hand = targets == 1 ? "-ACT-YFG-" : "-AC--T-YFG-";
          EXPECT_EQ(alignment.rows[with_query].sequence, row_by_hand);
        }
      }
    }
  }
}

// Domains are listed by their own score; of equal ones the name decides, not the order of targets.
TEST(PfamTable, DomainsOfEqualScoreAreInOrderOfNames) {
  Hit first = make_hit("zebra", 0, 60.0f), second = make_hit("apple", 1, 50.0f);
  for (Hit* hit : {&first, &second}) {
    hit->score.domains[0].bits = 30;
    hit->score.domains[0].log_p = -30;
  }
  std::string out;
  append_pfam_table(out, make_result({first, second}).hits);
  const std::size_t domains = out.find("# Domain scores");
  ASSERT_NE(domains, out.npos);
  EXPECT_LT(out.find("\nzebra"), out.find("\napple"));
  EXPECT_LT(out.find("\napple", domains), out.find("\nzebra", domains));
}

}  // namespace
}  // namespace hmmjit
