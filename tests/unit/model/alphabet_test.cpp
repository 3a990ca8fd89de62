#include "model/alphabet.hpp"

#include <gtest/gtest.h>

#include "model/hmm.hpp"

namespace hmmjit {
namespace {

int code(const Alphabet& a, char c) { return a.digit[static_cast<unsigned char>(c)]; }

std::uint32_t members(const Alphabet& a, std::string_view symbols) {
  std::uint32_t set = 0;
  for (const char c : symbols) set |= 1u << code(a, c);
  return set;
}

TEST(Alphabet, AminoCodes) {
  const Alphabet& a = amino_alphabet();
  EXPECT_EQ(a.K, 20);
  EXPECT_EQ(a.Kp, 29);
  EXPECT_EQ(a.symbols, "ACDEFGHIKLMNPQRSTVWY-BJZOUX*~");
  for (int x = 0; x < a.Kp; ++x) EXPECT_EQ(code(a, a.symbols[x]), x);
  EXPECT_EQ(code(a, 'a'), 0);
  EXPECT_EQ(code(a, 'x'), 26);
  EXPECT_EQ(code(a, '_'), 20);
  EXPECT_EQ(code(a, '.'), 20);
  for (const char c : {'1', ' ', '\n', '\0', '@', '[', '\x80'}) EXPECT_EQ(code(a, c), kInvalidCode);
  EXPECT_EQ(a.gap(), 20);
  EXPECT_EQ(a.any(), 26);
  EXPECT_EQ(a.nonresidue(), 27);
  EXPECT_EQ(a.missing(), 28);
  EXPECT_TRUE(a.is_degenerate(21) && a.is_degenerate(26));
  EXPECT_FALSE(a.is_degenerate(19) || a.is_degenerate(20) || a.is_degenerate(27));
}

TEST(Alphabet, AminoDegeneracy) {
  const Alphabet& a = amino_alphabet();
  EXPECT_EQ(a.degeneracy[code(a, 'B')], members(a, "DN"));
  EXPECT_EQ(a.degeneracy[code(a, 'J')], members(a, "IL"));
  EXPECT_EQ(a.degeneracy[code(a, 'Z')], members(a, "EQ"));
  EXPECT_EQ(a.degeneracy[code(a, 'O')], members(a, "K"));
  EXPECT_EQ(a.degeneracy[code(a, 'U')], members(a, "C"));
  EXPECT_EQ(a.degeneracy[code(a, 'X')], (1u << 20) - 1);
  for (const char c : {'-', '*', '~'}) EXPECT_EQ(a.degeneracy[code(a, c)], 0u);
}

TEST(Alphabet, NucleicCodes) {
  for (const Alphabet* a : {&dna_alphabet(), &rna_alphabet()}) {
    EXPECT_EQ(a->K, 4);
    EXPECT_EQ(a->Kp, 18);
    EXPECT_EQ(code(*a, 'T'), 3);
    EXPECT_EQ(code(*a, 'u'), 3);
    EXPECT_EQ(code(*a, 'N'), a->any());
    EXPECT_EQ(code(*a, 'X'), a->any());
    EXPECT_EQ(code(*a, 'I'), 0);
    EXPECT_EQ(code(*a, 'E'), kInvalidCode);
    EXPECT_EQ(a->degeneracy[code(*a, 'Y')], members(*a, "CT"));
    EXPECT_EQ(a->degeneracy[code(*a, 'V')], members(*a, "ACG"));
    EXPECT_EQ(a->degeneracy[code(*a, 'N')], 15u);
    EXPECT_EQ(a->background[3], 0.25f);
  }
  EXPECT_EQ(dna_alphabet().symbols[3], 'T');
  EXPECT_EQ(rna_alphabet().symbols[3], 'U');
  EXPECT_EQ(&alphabet_of(AlphabetType::kRna), &rna_alphabet());
  EXPECT_EQ(&alphabet_of(AlphabetType::kDna), &dna_alphabet());
  EXPECT_EQ(&alphabet_of(AlphabetType::kAmino), &amino_alphabet());
}

TEST(Consensus, FirstLargestUpperCaseFromHalf) {
  Hmm hmm;
  hmm.M = 3;
  hmm.alphabet = &amino_alphabet();
  hmm.match.assign(4 * 20, 0.0f);
  const auto set = [&](int k, char c, float p) {
    hmm.match[static_cast<std::size_t>(k * 20 + code(*hmm.alphabet, c))] = p;
  };
  set(1, 'W', 0.5f);
  set(2, 'K', 0.49f);
  set(3, 'D', 0.3f), set(3, 'V', 0.3f);  // a tie: the first one
  EXPECT_EQ(compute_consensus(hmm), "Wkd");
  hmm.alphabet = &dna_alphabet();
  hmm.M = 2;
  hmm.match = {0, 0, 0, 0, 0.05f, 0.9f, 0.05f, 0, 0, 0, 0.11f, 0.89f};
  EXPECT_EQ(compute_consensus(hmm), "Ct");
}

}  // namespace
}  // namespace hmmjit
