#include "reference/scans.hpp"

#include <algorithm>
#include <cstdint>

#include "reference/filters.hpp"

namespace hmmjit::reference {
namespace {

// A diagonal ends after this many residues without a higher score.
constexpr int kPatience = 5;

}  // namespace

int marking_height(const ByteProfile& profile, const SsvScan& scan) {
  const int height = scan.threshold - scan.begin;
  const bool fits =
      height > 0 && height <= 127 - profile.bias && scan.threshold + profile.bias <= 255;
  return fits ? height : 0;
}

Diagonal ssv_diagonal(const ByteProfile& profile, const SsvScan& scan,
                      std::span<const Residue> residues, int row, int node, int score) {
  const auto gain = [&](int i, int k) {
    const std::size_t x = residues[static_cast<std::size_t>(i - 1)];
    return profile.bias -
           profile.cost[x * static_cast<std::size_t>(profile.M) + static_cast<std::size_t>(k - 1)];
  };
  int first = row, first_node = node;
  for (int rest = score; rest > scan.floor && first >= 1 && first_node >= 1; --first, --first_node)
    rest -= gain(first, first_node);
  ++first, ++first_node;

  const int L = static_cast<int>(residues.size());
  int last = row, best = score, waited = 0;
  // As in the reference, the last node is never reached.
  for (int i = row + 1, k = node + 1; k < profile.M && i <= L && waited < kPatience; ++i, ++k) {
    score += gain(i, k);
    ++waited;
    if (score >= best) {
      best = score;
      last = i;
      waited = 0;
    }
  }
  const int last_node = node + (last - row);
  return {first, last_node, last_node - first_node + 1};
}

std::vector<Diagonal> ssv_scan(const ByteProfile& profile, const SsvScan& scan,
                               std::span<const Residue> residues) {
  const int M = profile.M;
  const int L = static_cast<int>(residues.size());
  const StripedOrder order(M, kSsvScanLanes);
  std::vector<Diagonal> diagonals;
  std::vector<int> row(static_cast<std::size_t>(M) + 1, 0), next(row);
  for (int i = 1; i <= L; ++i) {
    const std::uint8_t* cost = profile.cost.data() + static_cast<std::size_t>(residues[i - 1]) *
                                                         static_cast<std::size_t>(M);
    int end = 1;
    for (int k = 1; k <= M; ++k) {
      const int score = std::min(std::max(row[k - 1], scan.begin) + profile.bias, 255);
      next[k] = std::max(score - cost[k - 1], 0);
      if (next[k] > next[end] || (next[k] == next[end] && order.before(k, end))) end = k;
    }
    row.swap(next);
    if (row[end] < scan.threshold) continue;
    diagonals.push_back(ssv_diagonal(profile, scan, residues, i, end, row[end]));
    std::ranges::fill(row, 0);
    i = std::max(i, last_row(diagonals.back()));
  }
  return diagonals;
}

std::vector<Diagonal> viterbi_scan(const WordProfile& profile, int move, int threshold,
                                   std::span<const Residue> residues) {
  const StripedOrder order(profile.M, kViterbiScanLanes);
  std::vector<Diagonal> records;
  ViterbiRow cells(profile.M);
  int J = ViterbiRow::kMinimum, B = profile.base + move;
  for (int row = 1; row <= static_cast<int>(residues.size()); ++row) {
    const int E = cells.advance(profile, residues[row - 1], B);
    if (E < threshold) {
      J = std::max(J, E + profile.ej);
      B = std::max(J, profile.base) + move;
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(records.size());
    for (int k = 1; k <= profile.M; ++k)
      if (cells.m[k] == E) records.push_back({row, k, 1});
    std::sort(records.begin() + first, records.end(), [&](const Diagonal& a, const Diagonal& b) {
      return order.before(a.last_node, b.last_node);
    });
    cells = ViterbiRow(profile.M);
  }
  return records;
}

}  // namespace hmmjit::reference
