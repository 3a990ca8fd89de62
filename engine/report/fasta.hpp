// Residues as FASTA.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "model/alphabet.hpp"

namespace hmmjit {

inline constexpr std::size_t kFastaColumns = 60;

/// Appends the lines below a header, with kFastaColumns residues each. Writes gaps as dots: readers
/// of targets refuse dashes in FASTA.
inline void append_fasta(std::string& out, std::span<const Residue> residues,
                         const Alphabet& alphabet) {
  for (std::size_t at = 0; at < residues.size(); at += kFastaColumns) {
    for (const Residue code : residues.subspan(at, std::min(kFastaColumns, residues.size() - at)))
      out += code == alphabet.gap() ? '.' : alphabet.symbols[code];
    out += '\n';
  }
}

}  // namespace hmmjit
