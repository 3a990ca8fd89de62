// The core Plan7 model as read from a file: probabilities, annotation and calibration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/alphabet.hpp"

namespace hmmjit {

/// Order of the seven transitions of a node, in memory and in files.
enum Transition : int { kMM = 0, kMI, kMD, kIM, kII, kDM, kDD, kTransitions };

/// Score distribution parameters in bits: Gumbel (mu, lambda) for MSV and Viterbi, exponential tail
/// (tau, lambda) for Forward. All are -99999 if the model is not calibrated.
struct Calibration {
  float msv_mu = -99999.0f, msv_lambda = -99999.0f;
  float viterbi_mu = -99999.0f, viterbi_lambda = -99999.0f;
  float forward_tau = -99999.0f, forward_lambda = -99999.0f;
};

/// Bit score cutoffs per sequence and per domain.
struct Cutoff {
  float sequence = 0, domain = 0;
};

/// Value type; immutable once read. Nodes are k = 1..M; node 0 is begin.
struct Hmm {
  std::string name;
  std::optional<std::string> accession;
  std::optional<std::string> description;
  int M = 0;
  const Alphabet* alphabet = nullptr;

  std::vector<float> match;              ///< [(M+1) x K] probabilities, row k; row 0 unused
  std::vector<float> insert;             ///< [(M+1) x K]
  std::vector<float> transition;         ///< [(M+1) x 7], row k, order of Transition
  std::array<float, kMaxBases> compo{};  ///< model composition, all zero when absent

  // Annotation: M characters, node k at index k-1; empty if absent.
  std::string consensus;  ///< never empty after reading: computed if the file has none
  std::string rf, mm, cs;
  std::vector<int> map;  ///< [M+1] alignment column of each node, from 1; or empty
  std::optional<std::uint32_t> checksum = {};  ///< of the alignment from which the model was built

  std::optional<Cutoff> ga, tc, nc;
  /// Longest expected hit on a nucleotide target (MAXL); see max_length().
  std::optional<int> max_length;
  Calibration calibration;
  /// Imported from HMMER2: the file lacks HMMER3's statistics, and build::calibrate adds them.
  bool needs_calibration = false;

  /// The values of node k.
  std::span<float> match_row(int k) { return row_of(match, k, alphabet->K); }
  std::span<float> insert_row(int k) { return row_of(insert, k, alphabet->K); }
  std::span<float> transition_row(int k) { return row_of(transition, k, kTransitions); }
  float match_p(int k, int x) const { return match[static_cast<std::size_t>(k) * alphabet->K + x]; }
  float t(int k, Transition a) const {
    return transition[static_cast<std::size_t>(k) * kTransitions + a];
  }

 private:
  static std::span<float> row_of(std::vector<float>& values, int k, int width) {
    return std::span(values).subspan(static_cast<std::size_t>(k) * width, width);
  }
};

/// Divides the probabilities of each state by their sum. No deletion follows the last node.
void renormalise(Hmm& hmm);

/// The consensus: for every node the first residue of maximum match probability, in upper case if
/// the probability is >= 0.5 (amino) or 0.9 (nucleic). Used if a file has no CONS column.
std::string compute_consensus(const Hmm& hmm);

/// [M+1]: probability that the match state of node k is visited (Eddy 2008, local entry); element 0
/// is unused.
std::vector<float> match_occupancy(const Hmm& hmm);

/// The shortest length that a sequence of the core model exceeds with a probability below `beta`;
/// at most 20 M.
int max_length(const Hmm& hmm, double beta);

}  // namespace hmmjit
