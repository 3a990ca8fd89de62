// Rounds and models from a host program, with public headers only.
#include <gtest/gtest.h>

#include <algorithm>

#include "hmmjit/hmmjit.hpp"
#include "tests/unit/api/support.hpp"

namespace {

TEST(Iteration, AFailedRoundIsSearchedAgain) {
  const auto inputs = hmmjit::tests::make_inputs(9, 4, 200);
  // The targets of the models come first.
  const std::size_t end = inputs.targets.find('>', inputs.targets.find('>', 1) + 1);
  const auto queries = hmmjit::Targets::from_memory(inputs.targets.substr(0, end));
  const auto targets = hmmjit::Targets::from_memory(inputs.targets);
  const auto results = [&](bool interrupted) {
    hmmjit::SearchOptions each(hmmjit::Program::kJackhmmer);
    each.device = HMMJIT_DEVICE_CPU;
    hmmjit::IterationOptions options;
    options.search = &each;
    hmmjit::IterativeSearch search(queries, targets, options);
    if (interrupted) {
      hmmjit::SearchCallbacks callbacks;
      callbacks.cancellation.emplace().cancel();
      EXPECT_THROW(search.next(callbacks), hmmjit::Error);
    }
    while (!search.done()) {
      for (const hmmjit::Round& round : search.next())
        EXPECT_STREQ(round.model.info().query_name, round.result.info().model_name);
    }
    hmmjit::Report report(hmmjit::ReportKind::kTsv);
    for (std::size_t query = 0; query < search.queries(); ++query) report.add(search, query);
    report.complete();
    return report.take_text();
  };
  const std::string whole = results(false);
  EXPECT_GT(std::ranges::count(whole, '\n'), 2);
  EXPECT_EQ(results(true), whole);
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
  const auto blanks = hmmjit::build_from_alignment_text(
      "# STOCKHOLM 1.0\n#=GF ID x\na GATTACAGGCC\n#=GC RF xx xxxxxxxx\n//\n");
  EXPECT_THROW((void)blanks[0].text(), hmmjit::Error);
  EXPECT_EQ(hmmjit::Targets::from_memory(">a\nACDE\n").alphabet(), hmmjit::Alphabet::kAmino);
  EXPECT_FALSE(hmmjit::Targets::from_file("x").alphabet());
}

}  // namespace
