#include "model/alphabet.hpp"

#include <gtest/gtest.h>

#include "model/hmm.hpp"

namespace hmmjit {
namespace {

int code(const Alphabet& a, char c) { return a.digit[static_cast<unsigned char>(c)]; }

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
