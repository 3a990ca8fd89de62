// Plain scalar dynamic programming: the oracle for every vector and GPU kernel. Natural node order;
// arithmetic as in Eddy 2011, verified against hmmsearch.
#pragma once

#include <span>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::reference {

enum class SsvStatus { kScore, kOverflow, kNoResult };

/// `nats` is the filter score for kScore and +inf for kOverflow; for kNoResult the MSV recurrence
/// must decide.
struct SsvResult {
  SsvStatus status = SsvStatus::kNoResult;
  float nats = 0;
  bool operator==(const SsvResult&) const = default;
};

/// SSV's decision from the largest cell plus 256 (128..255), for all implementations.
SsvResult ssv_decide(const ByteProfile& profile, int best_unsigned, int L);
/// False if profile and length exceed SSV's byte range; then MSV must decide.
bool ssv_usable(const ByteProfile& profile, int L);

SsvResult ssv_filter(const ByteProfile& profile, std::span<const Residue> residues);
/// The full MSV recurrence, in nats; +inf on overflow.
float msv_recurrence(const ByteProfile& profile, std::span<const Residue> residues);
/// Converts the final J byte of the MSV recurrence to nats.
float msv_nats(const ByteProfile& profile, int J, int L);
/// SSV first, then MSV if SSV has no result: hmmsearch's "MSV filter".
float msv_filter(const ByteProfile& profile, std::span<const Residue> residues);

/// A row of the Viterbi filter, with saturating 16-bit additions. Index k is node k; index 0 lies
/// outside the model. As in the reference, the minimum is an ordinary number: adding a positive
/// score raises it.
struct ViterbiRow {
  static constexpr int kMinimum = -32768;
  explicit ViterbiRow(int M) : m(static_cast<std::size_t>(M) + 1, kMinimum), i(m), d(m) {}
  /// Advances by residue `x`; returns the best match score of the new row.
  int advance(const WordProfile& profile, Residue x, int B);

  std::vector<int> m, i, d;
};

/// Viterbi filter, in nats; +inf on overflow, -inf without a path.
float viterbi_filter(const WordProfile& profile, std::span<const Residue> residues);
/// Converts the final C word to nats.
float viterbi_nats(const WordProfile& profile, int C, int L);

/// Composition bias filter score, in nats.
float bias_filter(const BiasModel& model, std::span<const Residue> residues);

}  // namespace hmmjit::reference
