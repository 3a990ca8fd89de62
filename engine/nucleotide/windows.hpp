// The filters for long targets: SSV diagonals and windows around them, the MSV and bias filters of
// each window, its Viterbi hits, and windows around these (Wheeler & Eddy 2013).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpu/filters.hpp"
#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// A query's tables for the filters.
struct WindowModel {
  /// With what SSV needs: most models of a library find no diagonal.
  WindowModel(const Query& query, const Options& options);
  /// Makes the rest, once. Thread-safe.
  void complete();

  SearchModel& model;
  int W;
  cpu::FilterTables tables;
  reference::SsvScan ssv;
  /// By node: the lengths of a path before and after it, as fractions of the window length.
  std::vector<float> before, after;
  float viterbi_nats = 0;  ///< score with P-value F2
  std::once_flag completed;
};

/// Residues `start` to `start + length - 1` of one of several sequences, 1-based.
struct Window {
  std::size_t sequence = 0;
  std::int64_t start = 0, length = 0;
  /// Number of the SSV window. Windows with the same number are in filter order.
  std::size_t group = 0;

  std::int64_t end() const { return start + length; }
  std::span<const Residue> part_of(std::span<const Residue> residues) const {
    return residues.subspan(static_cast<std::size_t>(start - 1), static_cast<std::size_t>(length));
  }
};

/// The fraction of a window's bias that counts: all up to `most` residues.
inline float bias_share(std::int64_t length, int most) {
  return static_cast<float>(length < most ? length : most) / static_cast<float>(length);
}

/// A window that passes the MSV and bias filters.
struct Candidate {
  Window window;
  float msv_nats = 0;
  float bias_nats = 0;  ///< bias filter score without the length part

  int length() const { return static_cast<int>(window.length); }
};

using Sequences = std::span<const std::span<const Residue>>;

std::vector<std::span<const Residue>> views_of(std::span<const Candidate> candidates,
                                               Sequences sequences);

/// Completes `model` if there is a diagonal. `counters` adds the residues that pass each filter.
/// `marked`: see cpu::FilterTables::ssv_scan.
std::vector<Candidate> find_candidates(WindowModel& model, const Options& options,
                                       Sequences sequences,
                                       const std::vector<cpu::MarkedRows>* marked,
                                       cpu::FilterScratch& scratch, FilterCounters& counters,
                                       Times& times);

/// Windows around the cells that the Viterbi scan finds in candidates. `best`: each candidate's
/// highest match cell in the Viterbi filter with the length model of `viterbi_length`, or
/// kUnknownCell; empty: none known. Does not scan a candidate whose highest cell is below the
/// threshold.
std::vector<Window> find_windows(const WindowModel& model, const Options& options,
                                 Sequences sequences, std::span<const Candidate> candidates,
                                 std::span<const int> best, cpu::FilterScratch& scratch,
                                 FilterCounters& counters, Times& times);
inline constexpr int kUnknownCell = std::numeric_limits<int>::max();
/// The length model for scanning a window, in residues.
inline int viterbi_length(std::int64_t window_length, int W) {
  return static_cast<int>(std::min<std::int64_t>(window_length, W));
}

}  // namespace hmmjit::nucleotide
