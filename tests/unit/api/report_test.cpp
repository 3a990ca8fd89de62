// Reports from a host program: refusals, and equality with the program's outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "hmmjit/hmmjit.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::ErrorCode;
using hmmjit::ReportKind;
using hmmjit::test_support::read_file;
using hmmjit::tests::code_of;
using hmmjit::tests::Inputs;
using hmmjit::tests::without_times;
using testing::HasSubstr;

struct Found {
  hmmjit::SearchOptions options;
  hmmjit::SearchResults results;
};

Found found(const std::function<void(hmmjit::SearchOptions&)>& change = {}) {
  const auto [models, targets] = hmmjit::tests::parsed_inputs(21, 4, 300);
  Found out{hmmjit::tests::on_cpu(), {}};
  if (change) change(out.options);
  out.results = hmmjit::search(models, targets, out.options);
  return out;
}

// Reports take options and statistics from the results.
TEST(Report, SaysTheSettingsOfItsSearch) {
  const Found loose = found([](auto& o) {
    o.F1 = 0.5;
    o.T = 5.0;
    o.Z = 1234.0;
  });
  const std::string plain = hmmjit::report_text(ReportKind::kMain, loose.results);
  EXPECT_THAT(plain, HasSubstr("(0.5)"));
  EXPECT_EQ(without_times(plain),
            without_times(hmmjit::report_text(ReportKind::kMain, loose.results,
                                              hmmjit::ReportOptions(loose.options))));
}

TEST(Report, IsCompleteOnce) {
  const Found f = found();
  hmmjit::Report report(ReportKind::kTsv);
  report.add_text("# first\n");
  report.add(f.results.models[0]);
  report.complete();
  EXPECT_EQ(code_of([&] { report.add_text("lost"); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { report.add(f.results.models[1]); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { report.complete(); }), ErrorCode::kUsage);
  const std::string text = report.take_text();
  EXPECT_THAT(text, testing::StartsWith("# first\ntarget\t"));
  EXPECT_THAT(text, testing::Not(HasSubstr("lost")));
  hmmjit::ReportOptions narrow;
  for (const int width : {-1, 60}) {
    narrow.text_width = width;
    EXPECT_EQ(code_of([&] { hmmjit::Report(ReportKind::kMain, narrow); }), ErrorCode::kUsage);
  }
}

TEST(Report, OfNoKindIsRefused) {
  for (const int kind : {-1, 99})
    EXPECT_EQ(code_of([&] { hmmjit::Report(static_cast<ReportKind>(kind)); }), ErrorCode::kUsage);
}

TEST(Report, HeaderAndPageAreTheProgramsOwn) {
  const Inputs inputs = hmmjit::tests::make_inputs(22, 3, 200);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string base = folder.path().string() + "/";
  const std::string models = folder.write("m.hmm", inputs.models).string();
  const std::string targets = folder.write("t.fa", inputs.targets).string();
  const std::string program = "'" HMMJIT_PROGRAM "'";
  const auto run = [](const std::string& command) { return std::system(command.c_str()); };
  ASSERT_EQ(run(program + " search --quiet --device cpu --cpu 2 --acc -E 3.5 --domT 4 --incE 0.5 " +
                "--F1 0.1 --F3 1e-4 --nobias --nonull2 -Z 1234 --domZ 77 --seed 7 --notextw " +
                "--restrictdb_n 150 -o '" + base + "out' --json '" + base + "json' '" + models +
                "' '" + targets + "'"),
            0);
  ASSERT_EQ(run(program + " report --top 5 --title 'a title' -o '" + base + "page.html' '" + base +
                "json'"),
            0);

  hmmjit::SearchOptions options = hmmjit::tests::on_cpu();
  options.E = 3.5;
  options.domT = 4;
  options.incE = 0.5;
  options.F1 = 0.1;
  options.F3 = 1e-4;
  options.bias_filter = options.null2 = false;
  options.Z = 1234;
  options.domZ = 77;
  options.seed = 7;
  options.target_count = 150;
  const auto results = hmmjit::search(hmmjit::Models::from_file(models),
                                      hmmjit::Targets::from_file(targets), options);
  hmmjit::ReportOptions how(options);
  how.prefer_accession = true;
  how.text_width = 0;
  hmmjit::RunInfo info;
  info.program = "hmmjit search";
  info.query_file = models.c_str();
  info.target_file = targets.c_str();

  const std::string output = read_file(base + "out");
  std::string header = output.substr(0, output.find("Query:"));
  const std::string line = "# output directed to file:         " + base + "out\n";
  const std::string json_line = "# JSON lines:                      " + base + "json\n";
  for (const std::string& files : {line, json_line}) {
    ASSERT_THAT(header, HasSubstr(files));
    header.erase(header.find(files), files.size());
  }
  EXPECT_EQ(hmmjit::main_report_header(info, how), header);
  hmmjit::Report main(ReportKind::kMain, how);
  main.add_text(hmmjit::main_report_header(info, how));
  for (const auto& model : results.models) main.add(model);
  main.complete();
  EXPECT_EQ(without_times(main.take_text()),
            without_times(header + output.substr(output.find("Query:"))));

  // The page takes facts about the run from the JSON lines.
  const std::string json = read_file(base + "json");
  const std::string last = json.substr(json.rfind('\n', json.size() - 2) + 1);
  const auto field = [&](const std::string& name) {
    const auto at = last.find("\"" + name + "\":\"") + name.size() + 4;
    return last.substr(at, last.find('"', at) - at);
  };
  const std::string texts[] = {field("options"), field("folder"), field("date")};
  info.settings = texts[0].c_str();
  info.folder = texts[1].c_str();
  info.date = texts[2].c_str();
  how.page_title = "a title";
  how.page_targets = 5;
  EXPECT_EQ(hmmjit::report_text(ReportKind::kHtmlPage, results, how, info),
            read_file(base + "page.html"));
}

}  // namespace
