#include "model/hmm.hpp"

namespace hmmjit {

std::string compute_consensus(const Hmm& hmm) {
  const Alphabet& alphabet = *hmm.alphabet;
  const float upper_case_from = alphabet.type == AlphabetType::kAmino ? 0.5f : 0.9f;
  std::string consensus(static_cast<std::size_t>(hmm.M), ' ');
  for (int k = 1; k <= hmm.M; ++k) {
    int best = 0;
    for (int x = 1; x < alphabet.K; ++x) {
      if (hmm.match_p(k, x) > hmm.match_p(k, best)) best = x;
    }
    const char symbol = alphabet.symbols[best];  // the symbols of residues are upper case
    consensus[k - 1] =
        hmm.match_p(k, best) >= upper_case_from ? symbol : static_cast<char>(symbol - 'A' + 'a');
  }
  return consensus;
}

}  // namespace hmmjit
