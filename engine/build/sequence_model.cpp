#include "build/sequence_model.hpp"

#include <utility>

#include "build/parameters.hpp"
#include "core/ascii.hpp"
#include "core/threads.hpp"

namespace hmmjit::build {
namespace {

// Upper case if the node emits its residue with a probability of at least 0.5 (nucleotides: 0.9).
// For a degenerate residue, HMMER reads past the end of the row, into the next nodes.
std::string consensus_of(const Hmm& hmm, std::span<const Residue> residues) {
  const Alphabet& alphabet = *hmm.alphabet;
  const float least = alphabet.type == AlphabetType::kAmino ? 0.5f : 0.9f;
  std::string consensus(residues.size(), ' ');
  for (int k = 1; k <= hmm.M; ++k) {
    const int code = residues[static_cast<std::size_t>(k - 1)];
    const float p = k + code / alphabet.K <= hmm.M ? hmm.match_p(k, code) : 0.0f;
    const char symbol = alphabet.symbols[static_cast<std::size_t>(code)];
    consensus[static_cast<std::size_t>(k - 1)] = p >= least ? symbol : ascii_lower(symbol);
  }
  return consensus;
}

}  // namespace

void set_gap_costs(Hmm& hmm, const double* open, const double* extend) {
  for (int k = 0; k <= hmm.M; ++k) {
    const std::span<float> t = hmm.transition_row(k);
    if (open != nullptr) {
      t[kMM] = static_cast<float>(1.0 - 2.0 * *open);
      t[kMI] = t[kMD] = static_cast<float>(*open);
    }
    if (extend != nullptr) {
      t[kIM] = t[kDM] = static_cast<float>(1.0 - *extend);
      t[kII] = t[kDD] = static_cast<float>(*extend);
    }
  }
  const std::span<float> last = hmm.transition_row(hmm.M);
  if (open != nullptr) last[kMM] = static_cast<float>(1.0 - *open);
  last[kMD] = 0.0f;
  last[kDM] = 1.0f;
  last[kDD] = 0.0f;
}

BuiltModel build_from_sequence(const ScoreSystem& system, std::string name,
                               std::span<const Residue> residues) {
  const FlushToZeroScope flush;  // as in HMMER
  const Alphabet& alphabet = *system.alphabet;
  const auto K = static_cast<std::size_t>(alphabet.K);
  BuiltModel built;
  built.sequences = 1;
  built.command_log = "[HMM created from a query sequence]";
  Hmm& hmm = built.hmm;
  hmm.name = std::move(name);
  hmm.alphabet = &alphabet;
  hmm.M = static_cast<int>(residues.size());
  const std::size_t nodes = residues.size() + 1;
  hmm.match.assign(nodes * K, 0.0f);
  hmm.insert.resize(nodes * K);
  hmm.transition.assign(nodes * kTransitions, 0.0f);
  hmm.match[0] = 1.0f;
  for (std::size_t k = 0; k < nodes; ++k) {
    for (std::size_t x = 0; x < K; ++x) {
      hmm.insert[k * K + x] = alphabet.background[x];
      if (k > 0) hmm.match[k * K + x] = static_cast<float>(system.conditional[residues[k - 1]][x]);
    }
  }
  set_gap_costs(hmm, &system.gap_open, &system.gap_extend);
  set_composition(hmm);
  hmm.consensus = consensus_of(hmm, residues);
  hmm.needs_calibration = true;
  return built;
}

}  // namespace hmmjit::build
