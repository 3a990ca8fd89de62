// Rounds and models from a host program, with public headers only. Rounds are the program's.
#include <gtest/gtest.h>

#include <cstdlib>

#include "hmmjit/hmmjit.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::ReportKind;

// Without comments, from `from` on.
std::string results_of(const std::string& text, const std::string& from = {}) {
  const std::size_t start = text.find(from);
  return hmmjit::tests::without_lines(start == text.npos ? text : text.substr(start), {"#"});
}

struct IterationInputs {
  hmmjit::test_support::TemporaryFolder folder;
  hmmjit::tests::Inputs inputs = hmmjit::tests::make_inputs(9, 4, 200);
  std::string targets = folder.write("targets.fasta", inputs.targets).string();
  std::string queries;
  hmmjit::SearchOptions options = hmmjit::tests::on_cpu();

  IterationInputs() {
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

TEST(Iteration, ReportsAreThoseOfTheProgram) {
  IterationInputs data;
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
  const IterationInputs data;
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

TEST(Build, EverySourceGivesItsModel) {
  const auto model = hmmjit::build_model({.name = "q", .residues = "MKVLAAGGHKLMWWCDEFGHIKLMN"});
  const auto again = hmmjit::Models::from_memory(model.binary())[0];
  EXPECT_STREQ(again.info().consensus, model.info().consensus);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string text = "# STOCKHOLM 1.0\n#=GF ID x\na GATTACAGGCC\nb GATTACAGGCC\n//\n";
  const auto rows = hmmjit::build_from_alignment_text(text);
  EXPECT_EQ(rows[0].info().alphabet, HMMJIT_DNA);
  const auto of_file = hmmjit::build_from_alignments(folder.write("x.sto", text).string());
  EXPECT_EQ(of_file[0].binary(), rows[0].binary());
  EXPECT_EQ(hmmjit::Targets::from_memory(">a\nACDE\n").alphabet(), hmmjit::Alphabet::kAmino);
  EXPECT_FALSE(hmmjit::Targets::from_file("x").alphabet());
}

}  // namespace
