// Models and rounds from a host program, with public headers only, compared with the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "hmmjit/hmmjit.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::ErrorCode;
using hmmjit::ReportKind;
using hmmjit::tests::code_of;

// Without comments, from `from` on.
std::string results_of(const std::string& text, const std::string& from = {}) {
  const std::size_t start = text.find(from);
  return hmmjit::tests::without_lines(start == text.npos ? text : text.substr(start), {"#"});
}

struct BuildInputs {
  hmmjit::test_support::TemporaryFolder folder;
  hmmjit::tests::Inputs inputs = hmmjit::tests::make_inputs(9, 4, 200);
  std::string targets = folder.write("targets.fasta", inputs.targets).string();
  std::string queries;
  hmmjit::SearchOptions options = hmmjit::tests::on_cpu();

  BuildInputs() {
    // The targets of the models come first.
    const std::size_t end = inputs.targets.find('>', inputs.targets.find('>', 1) + 1);
    queries = folder.write("queries.fasta", inputs.targets.substr(0, end)).string();
  }
  void run(const std::string& arguments) const {
    const std::string there = "cd '" + folder.path().string() + "' && '" HMMJIT_PROGRAM "' ";
    ASSERT_EQ(std::system((there + arguments).c_str()), 0) << arguments;
  }
  std::string read(const std::string& name) const {
    return hmmjit::test_support::read_file(folder.file(name));
  }
};

TEST(Build, ModelsOfSequencesFindWhatPhmmerFinds) {
  const BuildInputs data;
  const hmmjit::Models models = hmmjit::build_models(hmmjit::Targets::from_file(data.queries));
  ASSERT_EQ(models.size(), 2u);
  const hmmjit::SearchResults found =
      hmmjit::search(models, hmmjit::Targets::from_file(data.targets), data.options);
  data.run("phmmer --quiet --device cpu -o out --domtblout dom queries.fasta targets.fasta");
  EXPECT_GT(found.statistics.hits_reported, 1u);
  EXPECT_EQ(results_of(hmmjit::report_text(ReportKind::kMain, found), "Query:"),
            results_of(data.read("out"), "Query:"));
  EXPECT_EQ(results_of(hmmjit::report_text(ReportKind::kDomainTable, found)),
            results_of(data.read("dom")));
  hmmjit::ModelInfo info = models[0].info();
  EXPECT_STREQ(info.query_name, info.name);
  info.query_name = nullptr;
  EXPECT_STREQ(models[0].with(info).info().query_name, "");
}

TEST(Build, NucleotidesAreFoundOnBothStrands) {
  const BuildInputs data;
  const std::string family = "GATTACAGGCCTTAACGGTCATTGCAGTCCGATAGGCTTACGATCGGATTACCAGG";
  const std::string reverse = "CCTGGTAATCCGATCGTAAGCCTATCGGACTGCAATGACCGTTAAGGCCTGTAATC";
  const std::string spacer(300, 'A');
  const std::string residues = spacer + family + spacer + reverse + spacer;
  hmmjit::Targets targets(hmmjit::Alphabet::kDna), queries(hmmjit::Alphabet::kDna);
  targets.add({.name = "chr1", .residues = residues});
  queries.add({.name = "family", .residues = family});
  const hmmjit::Models models = hmmjit::build_models(queries);
  hmmjit::SearchOptions search(hmmjit::Program::kNhmmer);
  search.threads = 2;
  hmmjit::NhmmerOptions options;
  options.search = &search;
  const hmmjit::SearchResults found = hmmjit::nhmmer(models, targets, options);
  const auto hits = found.models.at(0).hits();
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_TRUE(found.models[0].info().long_targets);
  const auto domains = found.models[0].domains();
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_GT(domains[0].alignment_to, domains[0].alignment_from);
  EXPECT_LT(domains[1].alignment_to, domains[1].alignment_from);
  data.folder.write("genome.fa", ">chr1\n" + residues);
  data.folder.write("query.fa", ">family\n" + family);
  data.run("nhmmer --quiet --dna -o out --tblout tbl query.fa genome.fa");
  EXPECT_EQ(results_of(hmmjit::report_text(ReportKind::kMain, found), "Query:"),
            results_of(data.read("out"), "Query:"));
  EXPECT_EQ(results_of(hmmjit::report_text(ReportKind::kTargetTable, found)),
            results_of(data.read("tbl")));
  hmmjit::NhmmerOptions wide = options;
  wide.window_length = 70000;
  std::string text;
  EXPECT_EQ(code_of([&] { hmmjit::nhmmer(models, targets, wide); }, &text), ErrorCode::kInput);
  EXPECT_THAT(text, testing::HasSubstr("or set window_length"));
  options.strands = HMMJIT_STRANDS_BOTTOM;
  EXPECT_EQ(hmmjit::nhmmer(models, targets, options).models.at(0).hits().size(), 1u);
  const hmmjit::Models rows = hmmjit::build_from_alignment_text("# STOCKHOLM 1.0\na " + family +
                                                                "\nb " + family + "\n//\n");
  EXPECT_EQ(rows[0].info().alphabet, HMMJIT_DNA);
}

TEST(Build, ABinaryModelIsTheModel) {
  const BuildInputs data;
  const hmmjit::Model model =
      hmmjit::build_model({.name = "q", .residues = "MKVLAAGGHKLMWWCDEFGHIKLMN"});
  const hmmjit::Model again = hmmjit::Models::from_memory(model.binary())[0];
  EXPECT_EQ(again.binary(), hmmjit::Models::from_memory(again.binary())[0].binary());
  EXPECT_STREQ(again.info().consensus, model.info().consensus);
  hmmjit::Models both;
  both.add(model);
  both.add(again);
  const auto found = hmmjit::search(both, hmmjit::Targets::load(data.targets), [&] {
    hmmjit::SearchOptions o = data.options;
    o.max_sensitivity = true;
    o.E = 1e6;
    return o;
  }());
  ASSERT_GT(found.models[0].hits().size(), 0u);
  ASSERT_EQ(found.models[0].hits().size(), found.models[1].hits().size());
  for (std::size_t i = 0; i < found.models[0].hits().size(); ++i)
    EXPECT_EQ(found.models[0].hits()[i].score, found.models[1].hits()[i].score);
}

TEST(Iteration, ReportsAreThoseOfTheProgram) {
  BuildInputs data;
  // The first query is done before the others.
  data.queries =
      data.folder.write("more.fasta", ">decoy\nACDEFGHIKL\n" + data.read("queries.fasta")).string();
  hmmjit::SearchOptions each(hmmjit::Program::kJackhmmer);
  EXPECT_EQ(each.incE, 0.001);
  each.device = HMMJIT_DEVICE_CPU;
  each.threads = 2;
  const std::string alignment = data.folder.file("sto");
  hmmjit::IterationOptions options;
  options.search = &each;
  options.rounds = 3;
  options.a3m = true;
  options.alignment_file = alignment.c_str();
  hmmjit::IterativeSearch search(hmmjit::Targets::from_file(data.queries),
                                 hmmjit::Targets::from_file(data.targets), options);
  std::size_t rounds = 0, last = 0;
  while (!search.done()) {
    for (const hmmjit::Round& round : search.next()) {
      ++rounds;
      last += round.last;
      EXPECT_TRUE(round.last || !round.converged);
      EXPECT_EQ(round.result.info().model_index, round.query);
      EXPECT_STREQ(round.model.info().query_name, round.result.info().model_name);
    }
  }
  EXPECT_EQ(last, 3u);
  EXPECT_GT(rounds, 3u);
  EXPECT_TRUE(search.next().empty());
  data.run(
      "jackhmmer --quiet --device cpu -N 3 -o out -A sto --tblout tbl --tsv tsv --a3m a3m "
      "more.fasta targets.fasta");
  const auto text = [&](ReportKind kind) {
    hmmjit::Report report(kind);
    for (std::size_t query = 0; query < search.queries(); ++query) report.add(search, query);
    report.complete();
    return report.take_text();
  };
  EXPECT_EQ(results_of(text(ReportKind::kMain)), results_of(data.read("out"), "Query:"));
  EXPECT_EQ(results_of(text(ReportKind::kAlignment)), results_of(data.read("sto")));
  EXPECT_EQ(results_of(text(ReportKind::kTargetTable)), results_of(data.read("tbl")));
  EXPECT_EQ(text(ReportKind::kTsv), data.read("tsv"));
  EXPECT_EQ(text(ReportKind::kA3m), data.read("a3m"));
}

TEST(Iteration, AFailedRoundIsSearchedAgain) {
  const BuildInputs data;
  const auto results = [&](bool interrupted) {
    hmmjit::SearchOptions each = data.options;
    each.incE = each.incdomE = 0.001;
    hmmjit::IterationOptions options;
    options.search = &each;
    hmmjit::IterativeSearch search(hmmjit::Targets::from_file(data.queries),
                                   hmmjit::Targets::load(data.targets), options);
    if (interrupted) {
      hmmjit::SearchCallbacks callbacks;
      callbacks.cancellation.emplace().cancel();
      EXPECT_THROW(search.next(callbacks), hmmjit::Error);
    }
    while (!search.done()) search.next();
    hmmjit::Report report(ReportKind::kMain);
    for (std::size_t query = 0; query < search.queries(); ++query) report.add(search, query);
    report.complete();
    return results_of(report.take_text());
  };
  EXPECT_EQ(results(true), results(false));
}

TEST(Build, WhatIsWrongIsSaid) {
  const BuildInputs data;
  const auto build = [&](const std::function<void(hmmjit::BuildOptions&)>& change) {
    hmmjit::BuildOptions options;
    change(options);
    return code_of([&] { hmmjit::build_model({.name = "q", .residues = "MKVLAAG"}, options); });
  };
  EXPECT_EQ(build([](auto& o) { o.matrix = "NOSUCH"; }), ErrorCode::kUsage);
  EXPECT_EQ(build([](auto& o) { o.matrix_file = "/nowhere"; }), ErrorCode::kInput);
  EXPECT_EQ(build([](auto& o) { o.gap_open = 0.5; }), ErrorCode::kUsage);
  EXPECT_EQ(build([](auto& o) { o.tail_mass = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(build([](auto& o) { o.msv_targets = 1; }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { hmmjit::build_model({.name = "q", .residues = ""}); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([] { hmmjit::build_model({.name = "q", .residues = "MK1"}); }),
            ErrorCode::kInput);
  EXPECT_EQ(code_of([] { hmmjit::build_from_alignment_text(""); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([] { hmmjit::build_from_alignments("/nowhere"); }), ErrorCode::kInput);
  const auto iterate = [&](
                           const std::function<void(hmmjit::IterationOptions&)>& change,
                           const std::function<void(hmmjit::SearchOptions&)>& search = [](auto&) {
                           }) {
    hmmjit::SearchOptions each(hmmjit::Program::kJackhmmer);
    search(each);
    hmmjit::IterationOptions options;
    options.search = &each;
    change(options);
    return code_of([&] {
      hmmjit::IterativeSearch(hmmjit::Targets::from_file(data.queries),
                              hmmjit::Targets::from_file(data.targets), options);
    });
  };
  EXPECT_EQ(iterate([](auto& o) { o.rounds = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(iterate([](auto& o) { o.text_width = 60; }), ErrorCode::kUsage);
  EXPECT_EQ(iterate([](auto&) {}, [](auto& o) { o.cutoffs = HMMJIT_CUT_GA; }), ErrorCode::kUsage);
  EXPECT_EQ(iterate([](auto&) {}, [](auto& o) { o.target_count = 5; }), ErrorCode::kUsage);
  EXPECT_EQ(iterate(
                [](auto& o) {
                  o.rounds = 1;
                  o.a3m = true;
                },
                [](auto& o) { o.keep_alignments = false; }),
            ErrorCode::kUsage);
}

}  // namespace
