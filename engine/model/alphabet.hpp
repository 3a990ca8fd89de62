// Digital alphabets: residue codes, degeneracies, background frequencies.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hmmjit {

/// One byte per residue: a code of the alphabet (0..Kp-1).
using Residue = std::uint8_t;

inline constexpr int kMaxCodes = 29;  ///< largest Kp of any alphabet (amino)
inline constexpr int kMaxBases = 20;  ///< largest K
/// Code between and after packed targets. Scores minus infinity in every filter table.
inline constexpr Residue kPaddingCode = 31;
inline constexpr Residue kInvalidCode = 255;

enum class AlphabetType : int { kRna = 1, kDna = 2, kAmino = 3 };  // as in binary models

/// Immutable; one instance per type for the life of the process. Codes and synonyms are HMMER's
/// (user's guide).
struct Alphabet {
  AlphabetType type;
  std::string_view name;     ///< "amino", "DNA", "RNA"
  int K;                     ///< canonical residues
  int Kp;                    ///< all codes: K residues, gap, degenerate..., any, '*', '~'
  std::string_view symbols;  ///< Kp characters, index = code
  /// Background frequencies of the K residues (null model), not renormalised.
  std::array<float, kMaxBases> background;
  /// Bit y of degeneracy[x]: code x may be residue y. Zero for - * ~.
  std::array<std::uint32_t, kMaxCodes> degeneracy;
  /// Maps input characters to codes, and characters outside the alphabet to kInvalidCode.
  /// Case-insensitive; includes synonyms ('_' and '.' are gaps; in DNA 'U' is T, 'X' is N, ...).
  std::array<Residue, 256> digit;

  int gap() const { return K; }
  int any() const { return Kp - 3; }
  int nonresidue() const { return Kp - 2; }
  int missing() const { return Kp - 1; }
  bool is_residue(int code) const { return code < K; }
  bool is_degenerate(int code) const { return code > K && code < Kp - 2; }
};

const Alphabet& amino_alphabet();
const Alphabet& dna_alphabet();
const Alphabet& rna_alphabet();
const Alphabet& alphabet_of(AlphabetType type);
/// True if both alphabets have the same codes, as DNA and RNA do.
inline bool same_codes(const Alphabet& a, const Alphabet& b) { return a.Kp == b.Kp; }

}  // namespace hmmjit
