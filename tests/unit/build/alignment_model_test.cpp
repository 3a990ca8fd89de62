// Models of alignments compared with those of HMMER 3.4, bit for bit.
#include "build/alignment_model.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "build/calibration.hpp"
#include "build/hmm_writer.hpp"
#include "build/priors.hpp"
#include "build/row_weights.hpp"
#include "build/sequence_model.hpp"
#include "dump.hpp"
#include "io/alignment_file.hpp"
#include "tests/support/command.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

using build::AlignmentOptions;

void expect_golden(const std::filesystem::path& alignment_path,
                   const std::filesystem::path& dump_path, const AlignmentOptions& options) {
  SCOPED_TRACE(dump_path.filename());
  auto reader = AlignmentReader::open(alignment_path.string(), {.alphabet = &amino_alphabet()});
  ASSERT_TRUE(reader) << reader.error().to_string();
  auto alignment = reader->next();
  ASSERT_TRUE(alignment) << alignment.error().to_string();
  if ((*alignment)->name.empty()) (*alignment)->name = alignment_path.stem().string();
  build::AlignedRows rows;
  auto built = build::build_from_alignment(**alignment, options, &rows);
  ASSERT_TRUE(built) << built.error().to_string();
  built->hmm.calibration = build::calibrate(built->hmm).value();
  build::apply_mask(built->hmm);
  auto wanted = test_support::read_dumps(dump_path.string());
  ASSERT_EQ(wanted.size(), 1u);
  std::string got;
  if (wanted.begin()->second.starts_with("W ")) {
    for (std::size_t i = 0; i < rows.weights.size(); ++i)
      got += "W " + std::to_string(i) + " " + test_support::hex(rows.weights[i]) + "\n";
  }
  got += test_support::dump(*built);
  EXPECT_EQ(test_support::difference(wanted.begin()->second, got), "");
}

// Weights of `hmmbuild --wpb -O` of HMMER 3.4, with more digits. A row that spans less than half of
// the columns is a fragment, whose outer gaps do not count.
TEST(RowWeights, AFragmentSpansLessThanHalf) {
  MultipleAlignment alignment;
  alignment.alphabet = &amino_alphabet();
  alignment.columns = 8;
  alignment.row_names = {"whole", "part"};
  const auto weights = [&](const std::string& part) {
    alignment.residues = test_support::digitise("ACDEFGHI" + part);
    return build::position_based_weights(alignment, false);
  };
  EXPECT_EQ(weights("ACDE----"), (std::vector<double>{1.0, 1.0}));
  const std::vector<double> of_fragment = weights("ACD-----");
  EXPECT_NEAR(of_fragment[0], 1.238, 0.001);
  EXPECT_NEAR(of_fragment[1], 0.762, 0.001);
}

TEST(AlignmentModel, EqualsGoldenDumps) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden models in " << folder;
  const auto golden = [&](const char* alignment, const char* dump, AlignmentOptions options = {}) {
    expect_golden(folder / alignment, folder / (std::string(dump) + ".dump.gz"), options);
  };
  using Columns = AlignmentOptions::Columns;
  using Weights = AlignmentOptions::Weights;
  using Effective = AlignmentOptions::Effective;
  using Prior = AlignmentOptions::Prior;
  golden("two.sto", "two");
  golden("one.sto", "one");
  golden("odd.sto", "odd");
  golden("frag.sto", "frag");
  golden("ident300.sto", "ident300");
  golden("anno.sto", "anno_fast");
  golden("anno.sto", "anno_hand", {.columns = Columns::kReference});
  golden("anno.sto", "anno_hand_wgiven",
         {.columns = Columns::kReference, .weights = Weights::kGiven});
  golden("frag.sto", "frag_eclust", {.effective = Effective::kClusters});
  golden("frag.sto", "frag_eentexp", {.effective = Effective::kEntropyPower});
  golden("frag.sto", "frag_plaplace", {.prior = Prior::kLaplace});
  golden("frag.sto", "frag_pnone", {.prior = Prior::kNone});
  golden("frag.sto", "frag_wgsc", {.weights = Weights::kTree});
  golden("frag.sto", "frag_wblosum", {.weights = Weights::kClusters});
  golden("frag.sto", "frag_symfrac0.9_maxins5", {.least_occupied = 0.9f, .most_insertions = 5});
  // Alignments of HMMER's tutorial.
  const auto edge = shared / "data/edge";
  for (const auto& [path, name] : {std::pair(edge / "seq_formats/globins4.sto", "globins4"),
                                   std::pair(edge / "hmm_wrong_kind/fn3.sto", "fn3")}) {
    if (std::filesystem::exists(path))
      expect_golden(path, folder / (std::string(name) + ".dump.gz"), {});
  }
}

// Enough rows that consensus columns are found in a sample; a script next to the dumps makes them.
TEST(AlignmentModel, DeepAlignmentsEqualGoldenDumps) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder / "gen_deep.py")) GTEST_SKIP() << "no gen_deep.py";
  const test_support::TemporaryFolder temporary;
  const std::filesystem::path work = temporary.path();
  ASSERT_TRUE(test_support::output_of("cd '" + work.string() + "' && python3 '" +
                                      (folder / "gen_deep.py").string() + "'"));
  expect_golden(work / "deep1200.sto", folder / "deep1200.dump.gz", {});
  expect_golden(work / "deep50001.sto", folder / "deep50001.dump.gz", {});
}

// Right-aligned, as by printf, for models that cannot emit their calibration targets.
TEST(HmmText, InfiniteStatisticsAreWrittenAsHmmbuildDoes) {
  const std::vector<Residue> residues = {0, 1, 2, 3};
  const auto system = build::make_score_system(build::find_matrix("BLOSUM62").value(), 0.02, 0.4);
  auto built = build::build_from_sequence(system.value(), "q", residues);
  built.hmm.calibration = {};
  built.hmm.calibration.msv_mu = -std::numeric_limits<float>::infinity();
  built.hmm.calibration.msv_lambda = 242.4528f;
  std::string text;
  build::append_hmm_text(text, built, "hmmjit", "-");
  EXPECT_NE(text.find("\nSTATS LOCAL MSV          -inf 242.45280\n"), std::string::npos) << text;
}

// Files of hmmbuild 3.4, except for the date.
TEST(HmmText, EqualsFilesOfHmmbuild) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden models in " << folder;
  using Columns = AlignmentOptions::Columns;
  using Weights = AlignmentOptions::Weights;
  const std::tuple<const char*, const char*, AlignmentOptions> cases[] = {
      {"two.sto", "two.hmm", {}},
      {"odd.sto", "odd.hmm", {}},
      {"frag.sto", "frag.hmm", {}},
      {"anno.sto",
       "anno_hand_wgiven.hmm",
       {.columns = Columns::kReference, .weights = Weights::kGiven}}};
  for (const auto& [alignment_name, model_name, options] : cases) {
    auto reader =
        AlignmentReader::open((folder / alignment_name).string(), {.alphabet = &amino_alphabet()});
    ASSERT_TRUE(reader);
    auto built = build::build_from_alignment(*reader->next().value(), options);
    ASSERT_TRUE(built);
    built->hmm.calibration = build::calibrate(built->hmm).value();
    build::apply_mask(built->hmm);
    std::string text;
    build::append_hmm_text(text, *built, "3.4 | Aug 2023", "-");
    EXPECT_EQ(test_support::difference(test_support::read_file(folder / model_name), text), "")
        << model_name;
  }
}

// Output of hmmbuild -O of HMMER 3.3.2 for this alignment: masked, doctored and fragment rows.
TEST(AlignedRows, EqualTextOfHmmbuild) {
  const std::string given =
      "# STOCKHOLM 1.0\n#=GF ID fam\n#=GF AC PF1\n#=GF DE some words\n#=GF AU me\n"
      "#=GS s2 AC ACC2\n"
      "s1 ACDEFGH..IKL*MNPQRSTVWY\n"
      "s2 ACDEFGHaaIKLaMNPQRSTVWY\n"
      "s3 ------H..IKL.MNP-------\n"
      "s4 ~~~~~~H.aI--.MNP~~~~~~~\n"
      "s5 ACD-FGHaa-KL.M--QRSTVWY\n"
      "s6 ACDEFGHa-IKL.MNPQRSTVWY\n"
      "s7 ACDEFGH.aIKL.MNPQRSTVWY\n"
      "#=GC MM ...m...................\n//\n";
  const std::string head = "# STOCKHOLM 1.0\n#=GF ID fam\n#=GF AC PF1\n#=GF DE some words\n\n";
  const auto text_of = [&](const AlignmentOptions& options) {
    auto reader = AlignmentReader::open(*open_memory_source("rows.sto", given),
                                        {.alphabet = &amino_alphabet()});
    const MultipleAlignment alignment = *reader->next().value();
    build::AlignedRows rows;
    EXPECT_TRUE(build::build_from_alignment(alignment, options, &rows));
    std::string text;
    build::append_stockholm(text, rows,
                            {alignment.name, alignment.accession, alignment.description});
    return text;
  };
  EXPECT_EQ(text_of({}), head +
                             "#=GS s2 WT 1.04\n"
                             "#=GS s1 WT 1.03\n"
                             "#=GS s3 WT 0.87\n"
                             "#=GS s4 WT 0.94\n"
                             "#=GS s5 WT 1.05\n"
                             "#=GS s6 WT 1.03\n"
                             "#=GS s7 WT 1.04\n"
                             "\n"
                             "s2      ACDXFGHaAIKLaMNPQRSTVWY\n"
                             "s1      ACDXFGH.-IKL*MNPQRSTVWY\n"
                             "s3      ~~~~~~H.-IKL.MNP~~~~~~~\n"
                             "s4      ~~~~~~H.AI--.MNP~~~~~~~\n"
                             "s5      ACD-FGHaA-KL.M--QRSTVWY\n"
                             "s6      ACDXFGH.AIKL.MNPQRSTVWY\n"
                             "s7      ACDXFGH.AIKL.MNPQRSTVWY\n"
                             "#=GC RF xxxxxxx.xxxx.xxxxxxxxxx\n"
                             "//\n");
  EXPECT_EQ(text_of({.least_occupied = 1.0f, .weights = AlignmentOptions::Weights::kNone}),
            head +
                "s2      ACDxFGHaaiklaMnpQRSTVWY\n"
                "s1      ACDxFGHi..kl*MnpQRSTVWY\n"
                "s3      ~~~~~~Hi...klMnp~~~~~~~\n"
                "s4      ~~~~~~Ha....iMnp~~~~~~~\n"
                "s5      ACD.FGHaa..klM..QRSTVWY\n"
                "s6      ACDxFGHai..klMnpQRSTVWY\n"
                "s7      ACDxFGHai..klMnpQRSTVWY\n"
                "#=GC RF xxx.xxx......x..xxxxxxx\n"
                "//\n");
}

// Values of the reference.
TEST(Priors, HelperValues) {
  EXPECT_EQ(build::log_gamma(0.002184), 0x1.88059429e95cep+2);
  EXPECT_EQ(build::log_gamma(0.5), 0x1.250d048cb808p-1);
  EXPECT_EQ(build::log_gamma(1), -0x1.c214p-33);
  EXPECT_EQ(build::log_gamma(10.25), 0x1.abc6d9940877bp+3);
  EXPECT_EQ(build::log_gamma(1000.5), 0x1.714ac96c9d4f2p+12);
  std::vector<float> counts(20, 0.0f);
  counts[0] = 1.5f;
  counts[9] = 0.25f;
  build::mixture_priors(amino_alphabet()).match.mean_posterior(counts);
  EXPECT_EQ(counts[0], 0x1.c2cebcp-2f);
  EXPECT_EQ(counts[9], 0x1.f8c76ep-4f);
  EXPECT_EQ(counts[19], 0x1.a33cf6p-7f);
  std::vector<float> transitions = {2, 0, 1};
  build::mixture_priors(amino_alphabet()).match_transition.mean_posterior(transitions);
  EXPECT_EQ(transitions, (std::vector<float>{0x1.74fc7ap-1f, 0x1.db0c12p-8f, 0x1.0e9adcp-2f}));
}

}  // namespace
}  // namespace hmmjit
