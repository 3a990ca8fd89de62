// Residues as FASTA.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "model/alphabet.hpp"

namespace hmmjit {

/// The lines below a header, 60 residues each.
inline void append_fasta(std::string& out, std::span<const Residue> residues,
                         const Alphabet& alphabet) {
  constexpr std::size_t kColumns = 60;
  for (std::size_t at = 0; at < residues.size(); at += kColumns) {
    for (const Residue code : residues.subspan(at, std::min(kColumns, residues.size() - at)))
      out += alphabet.symbols[code];
    out += '\n';
  }
}

}  // namespace hmmjit
