// Compares the parsing functions of every instruction set of this machine with loops over bytes.
#include "io/translate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/sequence_parsing.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit::sequence_parsing {
namespace {

using test_support::Random;

// Mostly residues, in lines; some white space, marks and bytes of any kind.
std::string random_text(Random& random, std::size_t length) {
  const std::string letters = "ACDEFGHIKLMNPQRSTVWYacdefghiklmnpqrstvwyBJZOUXbjzoux*";
  const std::string others = " \t-.0>@`{\x7f\xff\r";
  std::string text;
  while (text.size() < length) {
    const int kind = random.integer(0, 99);
    if (kind < 95) {
      text += letters[static_cast<std::size_t>(
          random.integer(0, static_cast<int>(letters.size()) - 1))];
    } else if (kind < 98) {
      text += '\n';
    } else {
      text +=
          others[static_cast<std::size_t>(random.integer(0, static_cast<int>(others.size()) - 1))];
    }
  }
  return text;
}

struct Translated {
  std::vector<Residue> residues;
  std::size_t consumed;
  bool operator==(const Translated&) const = default;
};

Translated by_bytes(const TranslationTable& table, const std::string& text) {
  Translated out{};
  for (const char c : text) {
    const std::uint8_t code = table.code[static_cast<unsigned char>(c)];
    if ((code & kSpecial) != 0) break;
    if ((code & kIgnored) == 0) out.residues.push_back(code);
    ++out.consumed;
  }
  return out;
}

Translated by_kernel(const ParsingKernels& kernels, const TranslationTable& table,
                     const std::string& text) {
  std::vector<Residue> room(text.size() + kTranslateSlack);
  std::size_t written = 0;
  const std::size_t consumed =
      kernels.translate(table, text.data(), text.size(), room.data(), &written);
  room.resize(written);
  return {room, consumed};
}

TEST(ParsingKernelSets, GiveTheSameResults) {
  ASSERT_FALSE(parsing_kernel_sets().empty());
  Random random(41);
  const TranslationTable tables[] = {TranslationTable(unaligned_table({amino_alphabet()})),
                                     TranslationTable(unaligned_table({dna_alphabet()}))};
  std::size_t translated = 0;
  for (int round = 0; round < 600; ++round) {
    const std::string text =
        random_text(random, static_cast<std::size_t>(random.integer(0, round)));
    const auto end = text.find_first_of("\r\n");
    for (const TranslationTable& table : tables) {
      const Translated expected = by_bytes(table, text);
      translated += expected.residues.size();
      for (const ParsingKernels& kernels : parsing_kernel_sets()) {
        ASSERT_EQ(by_kernel(kernels, table, text), expected) << text;
        ASSERT_EQ(kernels.find_line_end(text.data(), text.size()),
                  end == text.npos ? text.size() : end);
        for (const char line_end : {'\n', '\r'}) {
          ASSERT_EQ(kernels.count_lines(text.data(), text.size(), line_end),
                    static_cast<std::size_t>(std::ranges::count(text, line_end)));
        }
      }
    }
  }
  EXPECT_GT(translated, 10'000u);
}

}  // namespace
}  // namespace hmmjit::sequence_parsing
