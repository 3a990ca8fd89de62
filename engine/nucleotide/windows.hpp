// The filters for long targets: SSV diagonals, windows around them, MSV and bias filters of each
// window, Viterbi hits in it, and windows around these (Wheeler & Eddy 2013).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/filters.hpp"
#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// The tables of a query for the filters.
struct WindowModel {
  WindowModel(const Query& query, const Options& options);

  const SearchModel& model;
  int W;
  cpu::FilterTables tables;
  reference::SsvScan ssv;
  /// By node: fractions of the window length that a path may have before and after it.
  std::vector<float> before, after;
  float viterbi_nats = 0;  ///< score of P-value F2
};

/// Residues `start` to `start + length - 1` of one of several sequences, 1-based.
struct Window {
  std::size_t sequence = 0;
  std::int64_t start = 0, length = 0;
  /// Windows in the same SSV window have the same number and are in the order of the filter.
  std::size_t group = 0;

  std::int64_t end() const { return start + length; }
  std::span<const Residue> part_of(std::span<const Residue> residues) const {
    return residues.subspan(static_cast<std::size_t>(start - 1), static_cast<std::size_t>(length));
  }
};

/// The fraction of a window's bias that counts: all of it up to `most` residues.
inline float bias_share(std::int64_t length, int most) {
  return static_cast<float>(length < most ? length : most) / static_cast<float>(length);
}

/// The windows of some sequences that pass all filters before Forward. `counters` takes the
/// residues past each of them. `marked`: as of cpu::FilterTables::ssv_scan.
std::vector<Window> find_windows(const WindowModel& model, const Options& options,
                                 std::span<const std::span<const Residue>> sequences,
                                 const std::vector<cpu::MarkedRows>* marked,
                                 cpu::FilterScratch& scratch, Counters& counters, Times& times);

}  // namespace hmmjit::nucleotide
