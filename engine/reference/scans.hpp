// Scans of long targets: places where SSV or Viterbi reaches a threshold, rather than one score
// (Wheeler & Eddy 2013). Plain scalar code, and what it shares with vector code.
#pragma once

#include <span>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::reference {

/// Residues and nodes matched one to one, without gaps.
struct Diagonal {
  int first = 0;      ///< residue, 1-based
  int last_node = 0;  ///< node of the last of them, 1-based
  int length = 0;
  bool operator==(const Diagonal&) const = default;
};

struct SsvScan {
  int threshold = 0;  ///< 0..255
  int begin = 0;      ///< score of a cell where an alignment begins, 0..255
  int floor = 0;      ///< the same, as diagonals are traced: it may be negative
};

/// Extends a cell that reaches the threshold, `score` in row `row` (1-based) at node `node`, in
/// both directions.
Diagonal ssv_diagonal(const ByteProfile& profile, const SsvScan& scan,
                      std::span<const Residue> residues, int row, int node, int score);
/// Where the scan goes on after a diagonal from a cell of that row: the last row that it covers.
inline int last_row(const Diagonal& diagonal) { return diagonal.first + diagonal.length - 1; }

/// Of nodes with equal scores, the one that comes first in vectors of `lanes` lanes counts.
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

/// Diagonals in the order of their cells that reach the threshold.
std::vector<Diagonal> ssv_scan(const ByteProfile& profile, const SsvScan& scan,
                               std::span<const Residue> residues);

/// Cells that reach `threshold` (-32768..32767) as diagonals of length 1. `move`:
/// WordProfile::move.
std::vector<Diagonal> viterbi_scan(const WordProfile& profile, int move, int threshold,
                                   std::span<const Residue> residues);

}  // namespace hmmjit::reference
