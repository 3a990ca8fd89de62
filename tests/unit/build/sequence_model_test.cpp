// Single-sequence models compared with those of HMMER 3.4, bit for bit, and with the installed
// hmmbuild.
#include "build/sequence_model.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "build/calibration.hpp"
#include "dump.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

using build::BuiltModel;

void expect_golden(const std::filesystem::path& folder, const std::string& sequences,
                   const std::string& dumps, const build::SubstitutionMatrix& matrix,
                   double open = 0.02, double extend = 0.4, std::uint32_t seed = 42,
                   const std::string& only = {}) {
  const auto system = build::make_score_system(matrix, open, extend);
  ASSERT_TRUE(system) << system.error().to_string();
  auto wanted = test_support::read_dumps((folder / dumps).string());
  int compared = 0;
  for (const auto& sequence : test_support::read_sequences(folder / sequences)) {
    if (!only.empty() && sequence.name != only) continue;
    const auto found = wanted.find(sequence.name);
    if (found == wanted.end()) continue;
    BuiltModel built = build::build_from_sequence(*system, sequence.name, sequence.residues);
    const auto calibration = build::calibrate(built.hmm, {.seed = seed});
    ASSERT_TRUE(calibration) << calibration.error().to_string();
    built.hmm.calibration = *calibration;
    std::string got = test_support::dump(built);
    // For a sequence that ends in a degenerate residue, HMMER's last letter is undefined.
    if (sequence.name == "DEGENEND") {
      const auto at = found->second.find("\nRF") - 1;
      found->second[at] = static_cast<char>(std::tolower(found->second[at]));
    }
    EXPECT_EQ(test_support::difference(found->second, got), "") << dumps << " " << sequence.name;
    ++compared;
  }
  EXPECT_EQ(static_cast<std::size_t>(compared), wanted.size()) << dumps;
}

TEST(SequenceModel, EqualsGoldenDumps) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden models in " << folder;
  const auto blosum62 = build::find_matrix("BLOSUM62").value();
  expect_golden(folder, "singles.fa", "singles_BLOSUM62.dump.gz", blosum62);
  expect_golden(folder, "singles.fa", "L2000_BLOSUM62.dump.gz", blosum62, 0.02, 0.4, 42, "L2000");
  expect_golden(folder, "singles.fa", "singles_PAM30.dump.gz", build::find_matrix("PAM30").value());
  expect_golden(folder, "singles.fa", "singles_popen0.1_pextend0.7_seed7.dump.gz", blosum62, 0.1,
                0.7, 7);
  expect_golden(folder, "stars.fa", "stars.dump.gz", blosum62);
  const auto asymmetric =
      build::parse_matrix(test_support::read_file(folder / "asym.mx"), "asym.mx");
  ASSERT_TRUE(asymmetric) << asymmetric.error().to_string();
  expect_golden(folder, "singles.fa", "singles_asym.dump.gz", *asymmetric);
}

// Scales of the nine matrices, from HMMER 3.4.
TEST(ScoreSystem, LambdaOfEveryMatrix) {
  const std::pair<const char*, double> wanted[] = {
      {"BLOSUM62", 0x1.459506d388091p-2}, {"BLOSUM45", 0x1.d3b37543fd4d4p-3},
      {"BLOSUM50", 0x1.de966a5070e38p-3}, {"BLOSUM80", 0x1.d05adb41df917p-3},
      {"BLOSUM90", 0x1.572547f408adbp-2}, {"PAM30", 0x1.5979a20d9c31dp-2},
      {"PAM70", 0x1.53b87a002bd2cp-2},    {"PAM120", 0x1.5a42a6af798a3p-2},
      {"PAM240", 0x1.c7a97ea182bd2p-3}};
  EXPECT_EQ(build::matrix_names(amino_alphabet()).size(), std::size(wanted));
  for (const auto& [name, lambda] : wanted) {
    const auto system = build::make_score_system(build::find_matrix(name).value(), 0.02, 0.4);
    ASSERT_TRUE(system) << name;
    EXPECT_EQ(system->lambda, lambda) << name;
  }
}

TEST(SubstitutionMatrix, FilesEqualTheBuiltIn) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto path = shared / "spec/builder/golden/b62.mx";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto matrix = build::parse_matrix(test_support::read_file(path), "b62.mx");
  ASSERT_TRUE(matrix) << matrix.error().to_string();
  EXPECT_EQ(matrix->scores, build::find_matrix("BLOSUM62")->scores);
}

std::string small_matrix(std::string_view labels, bool labelled, int on, int off) {
  std::ostringstream text;
  text << "# comment\n";
  for (const char c : labels) text << "  " << c;
  text << "\n";
  for (const char row : labels) {
    if (labelled) text << row << " ";
    for (const char column : labels) text << (row == column ? on : off) << " ";
    text << "# rest\n";
  }
  return text.str();
}

TEST(SubstitutionMatrix, LabelsAndErrors) {
  constexpr std::string_view kAll = "YWVTSRQPNMLKIHGFEDCAX*";
  for (const bool labelled : {false, true}) {
    const auto matrix = build::parse_matrix(small_matrix(kAll, labelled, 5, -2), "m");
    ASSERT_TRUE(matrix) << matrix.error().to_string();
    EXPECT_EQ(matrix->scores[0][0], 5);
    EXPECT_EQ(matrix->scores[0][19], -2);
  }
  const auto message = [](const std::string& text) {
    const auto matrix = build::parse_matrix(text, "m");
    return matrix ? std::string("accepted") : matrix.error().to_string();
  };
  EXPECT_NE(message(small_matrix("ACDEFGHIKLMNPQRSTVW", true, 5, -2)).find("no column Y"),
            std::string::npos);
  EXPECT_NE(message(small_matrix("AACDEFGHIKLMNPQRSTVWY", true, 5, -2)).find("twice"),
            std::string::npos);
  EXPECT_NE(message(small_matrix(kAll, true, 5, -2) + "1 2 3\n").find("more rows"),
            std::string::npos);
  EXPECT_NE(message("A C 1\n").find("\"1\""), std::string::npos);
  EXPECT_NE(message("").find("0 rows"), std::string::npos);
  std::string short_row = small_matrix(kAll, false, 5, -2);
  short_row.erase(short_row.rfind("-2"), 2);
  EXPECT_NE(message(short_row).find("21 scores where 22"), std::string::npos) << message(short_row);
  // Scores that are all positive or all negative have no scale.
  for (const int off : {5, 1}) {
    const auto matrix = build::parse_matrix(small_matrix(kAll, true, 5, off), "m");
    EXPECT_FALSE(build::make_score_system(*matrix, 0.02, 0.4));
  }
  EXPECT_FALSE(build::make_score_system(*build::parse_matrix(small_matrix(kAll, true, -1, -5), "m"),
                                        0.02, 0.4));
}

TEST(SequenceModel, OnlyStarsCannotBeCalibrated) {
  const auto system =
      build::make_score_system(build::find_matrix("BLOSUM62").value(), 0.02, 0.4).value();
  const std::vector<Residue> stars(5, static_cast<Residue>(amino_alphabet().nonresidue()));
  const auto calibration = build::calibrate(build::build_from_sequence(system, "s", stars).hmm);
  ASSERT_FALSE(calibration);
  EXPECT_EQ(calibration.error().code, ErrorCode::kInput);
}

}  // namespace
}  // namespace hmmjit
