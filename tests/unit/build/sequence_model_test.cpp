// Substitution matrices and their scales. tests/scenario/builder_test.py compares models of
// sequences.
#include "build/sequence_model.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "build/calibration.hpp"

namespace hmmjit {
namespace {

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
