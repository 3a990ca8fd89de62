// Scans long targets for all places where SSV or Viterbi reaches a threshold (Wheeler & Eddy 2013):
// plain scalar code, and helpers that the vector code also uses.
#pragma once

#include <span>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::reference {

/// An ungapped alignment.
struct Diagonal {
  int first = 0;      ///< first residue, 1-based
  int last_node = 0;  ///< 1-based
  int length = 0;
  bool operator==(const Diagonal&) const = default;
};

struct SsvScan {
  int threshold = 0;  ///< 0..255
  int begin = 0;      ///< score of a cell in which an alignment begins, 0..255
  int floor = 0;      ///< score at which a traced diagonal begins; may be negative
};

/// The value above `begin` that a plain SSV recurrence in signed bytes reaches in every row in
/// which a cell of the scan reaches the threshold (the scan then clears its row, which only lowers
/// cells). 0: bytes cannot hold such values, and all rows must be scanned.
int marking_height(const ByteProfile& profile, const SsvScan& scan);

/// Extends a cell that reaches the threshold (`score` in row `row`, 1-based, at node `node`) in
/// both directions.
Diagonal ssv_diagonal(const ByteProfile& profile, const SsvScan& scan,
                      std::span<const Residue> residues, int row, int node, int score);
/// The last row that a diagonal covers; the scan continues after it.
inline int last_row(const Diagonal& diagonal) { return diagonal.first + diagonal.length - 1; }

/// The node order of striped vectors with `lanes` lanes, which decides between equal scores.
struct StripedOrder {
  int Q;
  StripedOrder(int M, int lanes) : Q(M > lanes ? (M - 1) / lanes + 1 : 2) {
    if (Q < 2) Q = 2;
  }
  bool before(int a, int b) const {
    const int qa = (a - 1) % Q, qb = (b - 1) % Q;
    return qa != qb ? qa < qb : a < b;
  }
};
inline constexpr int kSsvScanLanes = 16, kViterbiScanLanes = 8;

/// Diagonals, in the order of the cells that reach the threshold.
std::vector<Diagonal> ssv_scan(const ByteProfile& profile, const SsvScan& scan,
                               std::span<const Residue> residues);

/// Cells that reach `threshold` (-32768..32767) as diagonals of length 1. `move`: see
/// WordProfile::move.
std::vector<Diagonal> viterbi_scan(const WordProfile& profile, int move, int threshold,
                                   std::span<const Residue> residues);

}  // namespace hmmjit::reference
