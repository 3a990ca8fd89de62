#include "build/substitution_matrix.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/numbers.hpp"
#include "core/text_fields.hpp"

namespace hmmjit::build {
namespace {

constexpr int kResidues = 20;

// The lower triangle of a symmetric matrix; rows and columns in the order ACDEFGHIKLMNPQRSTVWY.
struct BuiltIn {
  std::string_view name;
  std::array<signed char, kResidues*(kResidues + 1) / 2> scores;
};

// PAM: Dayhoff, Schwartz & Orcutt 1978, in half bits (PAM240: third bits). BLOSUM: Henikoff &
// Henikoff 1992, in half bits (BLOSUM45, BLOSUM50: third bits).
// clang-format off
constexpr std::array<BuiltIn, 9> kAmino = {{
    {"PAM30",
     {
      6,
      -6, 10,
      -3, -14, 8,
      -2, -14, 2, 8,
      -8, -13, -15, -14, 9,
      -2, -9, -3, -4, -9, 6,
      -7, -7, -4, -5, -6, -9, 9,
      -5, -6, -7, -5, -2, -11, -9, 8,
      -7, -14, -4, -4, -14, -7, -6, -6, 7,
      -6, -15, -12, -9, -3, -10, -6, -1, -8, 7,
      -5, -13, -11, -7, -4, -8, -10, -1, -2, 1, 11,
      -4, -11, 2, -2, -9, -3, 0, -5, -1, -7, -9, 8,
      -2, -8, -8, -5, -10, -6, -4, -8, -6, -7, -8, -6, 8,
      -4, -14, -2, 1, -13, -7, 1, -8, -3, -5, -4, -3, -3, 8,
      -7, -8, -10, -9, -9, -9, -2, -5, 0, -8, -4, -6, -4, -2, 8,
      0, -3, -4, -4, -6, -2, -6, -7, -4, -8, -5, 0, -2, -5, -3, 6,
      -1, -8, -5, -6, -9, -6, -7, -2, -3, -7, -4, -2, -4, -5, -6, 0, 7,
      -2, -6, -8, -6, -8, -5, -6, 2, -9, -2, -1, -8, -6, -7, -8, -6, -3, 7,
      -13, -15, -15, -17, -4, -15, -7, -14, -12, -6, -13, -8, -14, -13, -2, -5, -13, -15, 13,
      -8, -4, -11, -8, 2, -14, -3, -6, -9, -7, -11, -4, -13, -12, -10, -7, -6, -7, -5, 10,
     }},
    {"PAM70",
     {
      5,
      -4, 9,
      -1, -9, 6,
      -1, -9, 3, 6,
      -6, -8, -10, -9, 8,
      0, -6, -1, -2, -7, 6,
      -4, -5, -1, -2, -4, -6, 8,
      -2, -4, -5, -4, 0, -6, -6, 7,
      -4, -9, -2, -2, -9, -5, -3, -4, 6,
      -4, -10, -8, -6, -1, -7, -4, 1, -5, 6,
      -3, -9, -7, -4, -2, -6, -6, 1, 0, 2, 10,
      -2, -7, 3, 0, -6, -1, 1, -3, 0, -5, -5, 6,
      0, -5, -4, -3, -7, -3, -2, -5, -4, -5, -5, -3, 7,
      -2, -9, 0, 2, -9, -4, 2, -5, -1, -3, -2, -1, -1, 7,
      -4, -5, -6, -5, -7, -6, 0, -3, 2, -6, -2, -3, -2, 0, 8,
      1, -1, -1, -2, -4, 0, -3, -4, -2, -6, -3, 1, 0, -3, -1, 5,
      1, -5, -2, -3, -6, -3, -4, -1, -1, -4, -2, 0, -2, -3, -4, 2, 6,
      -1, -4, -5, -4, -5, -3, -4, 3, -6, 0, 0, -5, -3, -4, -5, -3, -1, 6,
      -9, -11, -10, -11, -2, -10, -5, -9, -7, -4, -8, -6, -9, -8, 0, -3, -8, -10, 13,
      -5, -2, -7, -6, 4, -9, -1, -4, -7, -4, -7, -3, -9, -8, -7, -5, -4, -5, -3, 9,
     }},
    {"PAM120",
     {
      3,
      -3, 9,
      0, -7, 5,
      0, -7, 3, 5,
      -4, -6, -7, -7, 8,
      1, -4, 0, -1, -5, 5,
      -3, -4, 0, -1, -3, -4, 7,
      -1, -3, -3, -3, 0, -4, -4, 6,
      -2, -7, -1, -1, -7, -3, -2, -3, 5,
      -3, -7, -5, -4, 0, -5, -3, 1, -4, 5,
      -2, -6, -4, -3, -1, -4, -4, 1, 0, 3, 8,
      -1, -5, 2, 1, -4, 0, 2, -2, 1, -4, -3, 4,
      1, -4, -3, -2, -5, -2, -1, -3, -2, -3, -3, -2, 6,
      -1, -7, 1, 2, -6, -3, 3, -3, 0, -2, -1, 0, 0, 6,
      -3, -4, -3, -3, -5, -4, 1, -2, 2, -4, -1, -1, -1, 1, 6,
      1, 0, 0, -1, -3, 1, -2, -2, -1, -4, -2, 1, 1, -2, -1, 3,
      1, -3, -1, -2, -4, -1, -3, 0, -1, -3, -1, 0, -1, -2, -2, 2, 4,
      0, -3, -3, -3, -3, -2, -3, 3, -4, 1, 1, -3, -2, -3, -3, -2, 0, 5,
      -7, -8, -8, -8, -1, -8, -3, -6, -5, -3, -6, -4, -7, -6, 1, -2, -6, -8, 12,
      -4, -1, -5, -5, 4, -6, -1, -2, -5, -2, -4, -2, -6, -5, -5, -3, -3, -3, -2, 8,
     }},
    {"PAM240",
     {
      2,
      -2, 12,
      0, -5, 4,
      0, -6, 4, 4,
      -4, -5, -6, -6, 9,
      1, -4, 1, 0, -5, 5,
      -1, -4, 1, 1, -2, -2, 7,
      -1, -2, -2, -2, 1, -3, -3, 5,
      -1, -6, 0, 0, -5, -2, 0, -2, 5,
      -2, -6, -4, -3, 2, -4, -2, 2, -3, 6,
      -1, -5, -3, -2, 0, -3, -2, 2, 0, 4, 7,
      0, -4, 2, 1, -4, 0, 2, -2, 1, -3, -2, 2,
      1, -3, -1, -1, -5, -1, 0, -2, -1, -3, -2, -1, 6,
      0, -6, 2, 3, -5, -1, 3, -2, 1, -2, -1, 1, 0, 4,
      -2, -4, -1, -1, -5, -3, 2, -2, 3, -3, 0, 0, 0, 1, 6,
      1, 0, 0, 0, -3, 1, -1, -1, 0, -3, -2, 1, 1, -1, 0, 2,
      1, -2, 0, 0, -3, 0, -1, 0, 0, -2, -1, 0, 0, -1, -1, 1, 3,
      0, -2, -2, -2, -1, -1, -2, 4, -3, 2, 2, -2, -1, -2, -3, -1, 0, 4,
      -6, -8, -7, -7, 0, -7, -3, -5, -4, -2, -4, -4, -6, -5, 2, -3, -5, -6, 17,
      -4, 0, -4, -4, 7, -5, 0, -1, -5, -1, -3, -2, -5, -4, -4, -3, -3, -3, 0, 10,
     }},
    {"BLOSUM45",
     {
      5,
      -1, 12,
      -2, -3, 7,
      -1, -3, 2, 6,
      -2, -2, -4, -3, 8,
      0, -3, -1, -2, -3, 7,
      -2, -3, 0, 0, -2, -2, 10,
      -1, -3, -4, -3, 0, -4, -3, 5,
      -1, -3, 0, 1, -3, -2, -1, -3, 5,
      -1, -2, -3, -2, 1, -3, -2, 2, -3, 5,
      -1, -2, -3, -2, 0, -2, 0, 2, -1, 2, 6,
      -1, -2, 2, 0, -2, 0, 1, -2, 0, -3, -2, 6,
      -1, -4, -1, 0, -3, -2, -2, -2, -1, -3, -2, -2, 9,
      -1, -3, 0, 2, -4, -2, 1, -2, 1, -2, 0, 0, -1, 6,
      -2, -3, -1, 0, -2, -2, 0, -3, 3, -2, -1, 0, -2, 1, 7,
      1, -1, 0, 0, -2, 0, -1, -2, -1, -3, -2, 1, -1, 0, -1, 4,
      0, -1, -1, -1, -1, -2, -2, -1, -1, -1, -1, 0, -1, -1, -1, 2, 5,
      0, -1, -3, -3, 0, -3, -3, 3, -2, 1, 1, -3, -3, -3, -2, -1, 0, 5,
      -2, -5, -4, -3, 1, -2, -3, -2, -2, -2, -2, -4, -3, -2, -2, -4, -3, -3, 15,
      -2, -3, -2, -2, 3, -3, 2, 0, -1, 0, 0, -2, -3, -1, -1, -2, -1, -1, 3, 8,
     }},
    {"BLOSUM50",
     {
      5,
      -1, 13,
      -2, -4, 8,
      -1, -3, 2, 6,
      -3, -2, -5, -3, 8,
      0, -3, -1, -3, -4, 8,
      -2, -3, -1, 0, -1, -2, 10,
      -1, -2, -4, -4, 0, -4, -4, 5,
      -1, -3, -1, 1, -4, -2, 0, -3, 6,
      -2, -2, -4, -3, 1, -4, -3, 2, -3, 5,
      -1, -2, -4, -2, 0, -3, -1, 2, -2, 3, 7,
      -1, -2, 2, 0, -4, 0, 1, -3, 0, -4, -2, 7,
      -1, -4, -1, -1, -4, -2, -2, -3, -1, -4, -3, -2, 10,
      -1, -3, 0, 2, -4, -2, 1, -3, 2, -2, 0, 0, -1, 7,
      -2, -4, -2, 0, -3, -3, 0, -4, 3, -3, -2, -1, -3, 1, 7,
      1, -1, 0, -1, -3, 0, -1, -3, 0, -3, -2, 1, -1, 0, -1, 5,
      0, -1, -1, -1, -2, -2, -2, -1, -1, -1, -1, 0, -1, -1, -1, 2, 5,
      0, -1, -4, -3, -1, -4, -4, 4, -3, 1, 1, -3, -3, -3, -3, -2, 0, 5,
      -3, -5, -5, -3, 1, -3, -3, -3, -3, -2, -1, -4, -4, -1, -3, -4, -3, -3, 15,
      -2, -3, -3, -2, 4, -3, 2, -1, -2, -1, 0, -2, -3, -1, -1, -2, -2, -1, 2, 8,
     }},
    {"BLOSUM62",
     {
      4,
      0, 9,
      -2, -3, 6,
      -1, -4, 2, 5,
      -2, -2, -3, -3, 6,
      0, -3, -1, -2, -3, 6,
      -2, -3, -1, 0, -1, -2, 8,
      -1, -1, -3, -3, 0, -4, -3, 4,
      -1, -3, -1, 1, -3, -2, -1, -3, 5,
      -1, -1, -4, -3, 0, -4, -3, 2, -2, 4,
      -1, -1, -3, -2, 0, -3, -2, 1, -1, 2, 5,
      -2, -3, 1, 0, -3, 0, 1, -3, 0, -3, -2, 6,
      -1, -3, -1, -1, -4, -2, -2, -3, -1, -3, -2, -2, 7,
      -1, -3, 0, 2, -3, -2, 0, -3, 1, -2, 0, 0, -1, 5,
      -1, -3, -2, 0, -3, -2, 0, -3, 2, -2, -1, 0, -2, 1, 5,
      1, -1, 0, 0, -2, 0, -1, -2, 0, -2, -1, 1, -1, 0, -1, 4,
      0, -1, -1, -1, -2, -2, -2, -1, -1, -1, -1, 0, -1, -1, -1, 1, 5,
      0, -1, -3, -2, -1, -3, -3, 3, -2, 1, 1, -3, -2, -2, -3, -2, 0, 4,
      -3, -2, -4, -3, 1, -2, -2, -3, -3, -2, -1, -4, -4, -2, -3, -3, -2, -3, 11,
      -2, -2, -3, -2, 3, -3, 2, -1, -2, -1, -1, -2, -3, -1, -2, -2, -2, -1, 2, 7,
     }},
    {"BLOSUM80",
     {
      7,
      -1, 13,
      -3, -7, 10,
      -2, -7, 2, 8,
      -4, -4, -6, -6, 10,
      0, -6, -3, -4, -6, 9,
      -3, -7, -2, 0, -2, -4, 12,
      -3, -2, -7, -6, -1, -7, -6, 7,
      -1, -6, -2, 1, -5, -3, -1, -5, 8,
      -3, -3, -7, -6, 0, -7, -5, 2, -4, 6,
      -2, -3, -6, -4, 0, -5, -4, 2, -3, 3, 9,
      -3, -5, 2, -1, -6, -1, 1, -6, 0, -6, -4, 9,
      -1, -6, -3, -2, -6, -5, -4, -5, -2, -5, -4, -4, 12,
      -2, -5, -1, 3, -5, -4, 1, -5, 2, -4, -1, 0, -3, 9,
      -3, -6, -3, -1, -5, -4, 0, -5, 3, -4, -3, -1, -3, 1, 9,
      2, -2, -1, -1, -4, -1, -2, -4, -1, -4, -3, 1, -2, -1, -2, 7,
      0, -2, -2, -2, -4, -3, -3, -2, -1, -3, -1, 0, -3, -1, -2, 2, 8,
      -1, -2, -6, -4, -2, -6, -5, 4, -4, 1, 1, -5, -4, -4, -4, -3, 0, 7,
      -5, -5, -8, -6, 0, -6, -4, -5, -6, -4, -3, -7, -7, -4, -5, -6, -5, -5, 16,
      -4, -5, -6, -5, 4, -6, 3, -3, -4, -2, -3, -4, -6, -3, -4, -3, -3, -3, 3, 11,
     }},
    {"BLOSUM90",
     {
      5,
      -1, 9,
      -3, -5, 7,
      -1, -6, 1, 6,
      -3, -3, -5, -5, 7,
      0, -4, -2, -3, -5, 6,
      -2, -5, -2, -1, -2, -3, 8,
      -2, -2, -5, -4, -1, -5, -4, 5,
      -1, -4, -1, 0, -4, -2, -1, -4, 6,
      -2, -2, -5, -4, 0, -5, -4, 1, -3, 5,
      -2, -2, -4, -3, -1, -4, -3, 1, -2, 2, 7,
      -2, -4, 1, -1, -4, -1, 0, -4, 0, -4, -3, 7,
      -1, -4, -3, -2, -4, -3, -3, -4, -2, -4, -3, -3, 8,
      -1, -4, -1, 2, -4, -3, 1, -4, 1, -3, 0, 0, -2, 7,
      -2, -5, -3, -1, -4, -3, 0, -4, 2, -3, -2, -1, -3, 1, 6,
      1, -2, -1, -1, -3, -1, -2, -3, -1, -3, -2, 0, -2, -1, -1, 5,
      0, -2, -2, -1, -3, -3, -2, -1, -1, -2, -1, 0, -2, -1, -2, 1, 6,
      -1, -2, -5, -3, -2, -5, -4, 3, -3, 0, 0, -4, -3, -3, -3, -2, -1, 5,
      -4, -4, -6, -5, 0, -4, -3, -4, -5, -3, -2, -5, -5, -3, -4, -4, -4, -3, 11,
      -3, -4, -4, -4, 3, -5, 1, -2, -3, -2, -2, -3, -4, -3, -3, -3, -2, -3, 2, 8,
     }},
}};
// clang-format on
// The default nucleotide matrix; order ACGT.
constexpr BuiltIn kNucleic = {"DNA1", {41, -32, 39, -26, -38, 46, -26, -17, -31, 39}};

std::span<const BuiltIn> built_in_matrices(const Alphabet& alphabet) {
  if (alphabet.type == AlphabetType::kAmino) return kAmino;
  return {&kNucleic, 1};
}

std::unexpected<Error> bad_matrix(const std::string& where, std::string what) {
  return fail(ErrorCode::kInput, std::move(what), where,
              "give a line of one-letter column labels, then one line of whole numbers for each");
}

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> out;
  line = line.substr(0, line.find('#'));
  while (!is_blank(line)) out.push_back(take_word(&line));
  return out;
}

}  // namespace

std::vector<std::string_view> matrix_names(const Alphabet& alphabet) {
  std::vector<std::string_view> names;
  for (const BuiltIn& matrix : built_in_matrices(alphabet)) names.push_back(matrix.name);
  return names;
}

std::string_view usual_matrix(const Alphabet& alphabet) {
  return alphabet.type == AlphabetType::kAmino ? "BLOSUM62" : "DNA1";
}

Result<SubstitutionMatrix> find_matrix(std::string_view name, const Alphabet& alphabet) {
  for (const BuiltIn& built_in : built_in_matrices(alphabet)) {
    if (built_in.name != name) continue;
    SubstitutionMatrix matrix{.name = std::string(name), .alphabet = &alphabet};
    std::size_t at = 0;
    for (int i = 0; i < alphabet.K; ++i) {
      for (int j = 0; j <= i; ++j)
        matrix.scores[i][j] = matrix.scores[j][i] = built_in.scores[at++];
    }
    return matrix;
  }
  std::string known;
  for (const std::string_view each : matrix_names(alphabet))
    known += fmt::format("{}{}", known.empty() ? "" : " ", each);
  return fail(ErrorCode::kUsage, fmt::format("no score matrix is named {}", name), "--mx",
              "use one of: " + known + "; or a file with --mxfile");
}

Result<SubstitutionMatrix> parse_matrix(std::string_view text, const std::string& file,
                                        const Alphabet& alphabet) {
  SubstitutionMatrix matrix{.name = file, .alphabet = &alphabet};
  std::vector<Residue> labels;  // codes of the columns
  std::size_t rows = 0, line_number = 0;
  while (!text.empty()) {
    ++line_number;
    std::vector<std::string_view> parts = fields(take_line(&text));
    if (parts.empty()) continue;
    const std::string where = fmt::format("{}:{}", file, line_number);
    if (labels.empty()) {
      std::uint32_t seen = 0;
      for (const std::string_view part : parts) {
        const Residue code = alphabet.digit[static_cast<unsigned char>(part.front())];
        if (part.size() != 1 || code == kInvalidCode)
          return bad_matrix(where, fmt::format("\"{}\" is no symbol of a residue", part));
        if (labels.size() == static_cast<std::size_t>(alphabet.Kp) || (seen >> code & 1) != 0)
          return bad_matrix(where, fmt::format("column \"{}\" stands there twice", part));
        seen |= 1u << code;
        labels.push_back(code);
      }
      for (int x = 0; x < alphabet.K; ++x) {
        if ((seen >> x & 1) == 0)
          return bad_matrix(where, fmt::format("there is no column {}", alphabet.symbols[x]));
      }
      continue;
    }
    if (rows == labels.size()) return bad_matrix(where, "there are more rows than columns");
    const Residue row = labels[rows];
    // The leading label is optional.
    if (parts.size() == labels.size() + 1 && parts.front().size() == 1 &&
        alphabet.digit[static_cast<unsigned char>(parts.front().front())] == row)
      parts.erase(parts.begin());
    if (parts.size() != labels.size())
      return bad_matrix(where,
                        fmt::format("{} scores where {} are due", parts.size(), labels.size()));
    for (std::size_t c = 0; c < parts.size(); ++c) {
      const auto score = parse_int(parts[c]);
      if (!score || *score < -10000 || *score > 10000)
        return bad_matrix(where, fmt::format("\"{}\" is no score", parts[c]));
      if (row < alphabet.K && labels[c] < alphabet.K)
        matrix.scores[row][labels[c]] = static_cast<int>(*score);
    }
    ++rows;
  }
  if (labels.empty() || rows < labels.size())
    return bad_matrix(file,
                      fmt::format("{} rows where {} are due", rows,
                                  labels.empty() ? alphabet.K : static_cast<int>(labels.size())));
  return matrix;
}

}  // namespace hmmjit::build
