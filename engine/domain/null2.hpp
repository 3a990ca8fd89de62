// Completes null2 odds for codes that stand for several residues or none (postprocess 9).
#pragma once

#include "model/alphabet.hpp"

namespace hmmjit::domain {

/// `odds` holds the K residues' ratios; fills the codes K..Kp-1.
inline void complete_null2(const Alphabet& alphabet, float* odds) {
  for (int x = alphabet.K; x < alphabet.Kp; ++x) {
    if (!alphabet.is_degenerate(x)) {
      odds[x] = 1.0f;
      continue;
    }
    float sum = 0;
    int members = 0;
    for (int y = 0; y < alphabet.K; ++y) {
      if (alphabet.degeneracy[static_cast<std::size_t>(x)] >> y & 1u) {
        sum += odds[y];
        ++members;
      }
    }
    odds[x] = sum / static_cast<float>(members);
  }
}

}  // namespace hmmjit::domain
