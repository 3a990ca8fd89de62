#include "model/alphabet.hpp"

#include <span>
#include <utility>

#include "core/ascii.hpp"

namespace hmmjit {
namespace {

// A degenerate symbol and its possible residues.
using Degenerate = std::pair<char, std::string_view>;
// An input character and its canonical one.
using Synonym = std::pair<char, char>;

Alphabet build(AlphabetType type, std::string_view name, int K, std::string_view symbols,
               std::span<const float> background, std::span<const Degenerate> degenerates,
               std::span<const Synonym> synonyms) {
  Alphabet a{};
  a.type = type;
  a.name = name;
  a.K = K;
  a.Kp = static_cast<int>(symbols.size());
  a.symbols = symbols;
  for (int x = 0; x < K; ++x) a.background[x] = background[x];

  a.digit.fill(kInvalidCode);
  const auto map = [&a](char c, Residue code) {
    a.digit[static_cast<unsigned char>(c)] = code;
    a.digit[static_cast<unsigned char>(ascii_lower(c))] = code;
  };
  for (int x = 0; x < a.Kp; ++x) map(symbols[x], static_cast<Residue>(x));
  for (const auto& [from, to] : synonyms) map(from, a.digit[static_cast<unsigned char>(to)]);

  for (int x = 0; x < K; ++x) a.degeneracy[x] = 1u << x;
  for (const auto& [symbol, members] : degenerates) {
    std::uint32_t set = 0;
    for (char c : members) set |= 1u << a.digit[static_cast<unsigned char>(c)];
    a.degeneracy[a.digit[static_cast<unsigned char>(symbol)]] = set;
  }
  return a;
}

// Amino acid frequencies in Swiss-Prot, as in the null model of HMMER3 (profile spec 1).
constexpr float kAminoBackground[] = {0.0787945f, 0.0151600f, 0.0535222f, 0.0668298f, 0.0397062f,
                                      0.0695071f, 0.0229198f, 0.0590092f, 0.0594422f, 0.0963728f,
                                      0.0237718f, 0.0414386f, 0.0482904f, 0.0395639f, 0.0540978f,
                                      0.0683364f, 0.0540687f, 0.0673417f, 0.0114135f, 0.0304133f};
constexpr float kNucleicBackground[] = {0.25f, 0.25f, 0.25f, 0.25f};

constexpr Degenerate kAminoDegenerates[] = {
    {'B', "DN"}, {'J', "IL"}, {'Z', "EQ"}, {'O', "K"}, {'U', "C"}, {'X', "ACDEFGHIKLMNPQRSTVWY"}};
// IUPAC codes. T includes U: the digit table maps both.
constexpr Degenerate kDnaDegenerates[] = {{'R', "AG"},  {'Y', "CT"},  {'M', "AC"},  {'K', "GT"},
                                          {'S', "CG"},  {'W', "AT"},  {'H', "ACT"}, {'B', "CGT"},
                                          {'V', "ACG"}, {'D', "AGT"}, {'N', "ACGT"}};

constexpr Synonym kAminoSynonyms[] = {{'_', '-'}, {'.', '-'}};
constexpr Synonym kDnaSynonyms[] = {{'U', 'T'}, {'X', 'N'}, {'I', 'A'}, {'_', '-'}, {'.', '-'}};
constexpr Synonym kRnaSynonyms[] = {{'T', 'U'}, {'X', 'N'}, {'I', 'A'}, {'_', '-'}, {'.', '-'}};

}  // namespace

const Alphabet& amino_alphabet() {
  static const Alphabet alphabet =
      build(AlphabetType::kAmino, "amino", 20, "ACDEFGHIKLMNPQRSTVWY-BJZOUX*~", kAminoBackground,
            kAminoDegenerates, kAminoSynonyms);
  return alphabet;
}

const Alphabet& dna_alphabet() {
  static const Alphabet alphabet = build(AlphabetType::kDna, "DNA", 4, "ACGT-RYMKSWHBVDN*~",
                                         kNucleicBackground, kDnaDegenerates, kDnaSynonyms);
  return alphabet;
}

const Alphabet& rna_alphabet() {
  static const Alphabet alphabet = build(AlphabetType::kRna, "RNA", 4, "ACGU-RYMKSWHBVDN*~",
                                         kNucleicBackground, kDnaDegenerates, kRnaSynonyms);
  return alphabet;
}

const Alphabet& alphabet_of(AlphabetType type) {
  return type == AlphabetType::kDna   ? dna_alphabet()
         : type == AlphabetType::kRna ? rna_alphabet()
                                      : amino_alphabet();
}

}  // namespace hmmjit
