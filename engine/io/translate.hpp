// Vector code of the FASTA parser, dispatched at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/alphabet.hpp"

namespace hmmjit::sequence_parsing {

/// The code of every input character, and a table of letters for the vector code.
struct TranslationTable {
  /// Built from the character classes of one format (see sequence_parsing.hpp).
  explicit TranslationTable(const std::array<std::uint8_t, 256>& classes);
  std::array<std::uint8_t, 256> code;
  /// [c & 31] for a letter c: its residue code, or kNotPlain if the letter is not a residue or its
  /// two cases differ.
  alignas(32) std::array<std::uint8_t, 32> letter;
  static constexpr std::uint8_t kNotPlain = 0xff;
};

/// Space that translate() needs after the last residue, because it writes whole vectors.
inline constexpr std::size_t kTranslateSlack = 256;

/// The functions below, for one instruction set.
struct ParsingKernels {
  std::size_t (*translate)(const TranslationTable&, const char*, std::size_t, Residue*,
                           std::size_t*);
  std::size_t (*find_line_end)(const char*, std::size_t);
  std::size_t (*count_lines)(const char*, std::size_t, char);
};
/// The instruction sets of this machine, fastest first. The last one works on every machine.
const std::vector<ParsingKernels>& parsing_kernel_sets();

/// Translates up to `count` characters to residue codes at `out` (room for `count` +
/// kTranslateSlack), dropping ignored ones; stops before the first special one. Returns the number
/// of characters consumed and sets `*written`.
std::size_t translate(const TranslationTable& table, const char* in, std::size_t count,
                      Residue* out, std::size_t* written);

/// Offset of the first CR or LF, or `count`.
std::size_t find_line_end(const char* in, std::size_t count);

/// How often `end` occurs.
std::size_t count_lines(const char* in, std::size_t count, char end);

}  // namespace hmmjit::sequence_parsing
