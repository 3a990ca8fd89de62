#include "model/hmm.hpp"

#include <algorithm>
#include <utility>

#include "core/ascii.hpp"
#include "model/numeric.hpp"

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
    const char symbol = alphabet.symbols[best];  // symbols of residues are upper case
    consensus[k - 1] = hmm.match_p(k, best) >= upper_case_from ? symbol : ascii_lower(symbol);
  }
  return consensus;
}

std::vector<float> match_occupancy(const Hmm& hmm) {
  std::vector<float> occupancy(static_cast<std::size_t>(hmm.M) + 1);
  occupancy[1] = hmm.t(0, kMI) + hmm.t(0, kMM);
  for (int k = 2; k <= hmm.M; ++k) {
    // The complement is a double, because HMMER's constant is.
    const float before = occupancy[k - 1];
    const float stay = before * (hmm.t(k - 1, kMM) + hmm.t(k - 1, kMI));
    occupancy[k] =
        static_cast<float>(static_cast<double>(stay) + (1.0 - static_cast<double>(before)) *
                                                           static_cast<double>(hmm.t(k - 1, kDM)));
  }
  return occupancy;
}

void renormalise(Hmm& hmm) {
  for (int k = 0; k <= hmm.M; ++k) {
    normalise(hmm.match_row(k));
    normalise(hmm.insert_row(k));
    const std::span<float> t = hmm.transition_row(k);
    normalise(t.subspan(kMM, 3));
    normalise(t.subspan(kIM, 2));
    normalise(t.subspan(kDM, 2));
  }
  const std::span<float> last = hmm.transition_row(hmm.M);
  last[kDM] = 1.0f;
  last[kDD] = 0.0f;
  if (last[kMD] > 0.0f) {
    last[kMD] = 0.0f;
    last[kMM] = last[kMI] = 0.5f;
  }
}

namespace {

// Probabilities of node k's states after some number of residues.
struct StateProbabilities {
  explicit StateProbabilities(std::size_t nodes) : M(nodes), I(nodes), D(nodes) {}
  std::vector<double> M, I, D;
};

// The first two steps: every path begins in M1.
void begin_paths(const Hmm& hmm, StateProbabilities& first, StateProbabilities& second) {
  first.M[1] = 1;
  first.D[2] = hmm.t(1, kMD);
  for (int k = 3; k <= hmm.M; ++k) first.D[k] = hmm.t(k - 1, kDD) * first.D[k - 1];
  second.I[1] = hmm.t(1, kMI) * first.M[1];
  second.M[2] = hmm.t(1, kMM) * first.M[1];
  for (int k = 3; k <= hmm.M; ++k) {
    second.M[k] = hmm.t(k - 1, kDM) * first.D[k - 1];
    second.D[k] = hmm.t(k - 1, kMD) * second.M[k - 1] + hmm.t(k - 1, kDD) * second.D[k - 1];
  }
}

// Adds a residue. Returns the probability that a path has not reached the end.
double extend_paths(const Hmm& hmm, const StateProbabilities& from, StateProbabilities& to) {
  const int m = hmm.M;
  to.M[1] = to.D[1] = 0;
  to.I[1] = hmm.t(1, kII) * from.I[1];
  double survive = to.I[1];
  for (int k = 2; k <= m; ++k) {
    to.M[k] = hmm.t(k - 1, kMM) * from.M[k - 1] + hmm.t(k - 1, kDM) * from.D[k - 1] +
              hmm.t(k - 1, kIM) * from.I[k - 1];
    to.I[k] = hmm.t(k, kMI) * from.M[k] + hmm.t(k, kII) * from.I[k];
    to.D[k] = hmm.t(k - 1, kMD) * to.M[k - 1] + hmm.t(k - 1, kDD) * to.D[k - 1];
    survive += to.I[k] + to.M[k] * (1 - hmm.t(k, kMD)) + to.D[k] * (1 - hmm.t(k, kDD));
  }
  return survive + (to.M[m] * hmm.t(m, kMD) + to.D[m] * hmm.t(m, kDD) - to.I[m]);
}

}  // namespace

int max_length(const Hmm& hmm, double beta) {
  const int m = hmm.M;
  if (m == 1) return 1;
  const auto nodes = static_cast<std::size_t>(m) + 1;
  StateProbabilities before(nodes), here(nodes);
  begin_paths(hmm, before, here);
  double ended = before.M[m] + here.M[m] + before.D[m] + here.D[m];
  const int limit = std::max(m, std::min(20 * m, 100000));
  for (int length = 3; length <= limit; ++length) {
    std::swap(before, here);
    const double survive = extend_paths(hmm, before, here);
    ended += here.M[m] + here.D[m];
    if (survive / (survive + ended) < beta) return length;
  }
  return limit;
}

}  // namespace hmmjit
