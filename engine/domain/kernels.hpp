// The float dynamic programming passes, compiled once per instruction set. Each sequence keeps
// its own four lanes; a vector of 4*G floats holds G sequences of one model side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "domain/lanes.hpp"
#include "domain/tables.hpp"

namespace hmmjit::domain {

/// The cells in a matrix of G groups: that of row i, stripe q, state s, group g, lane r is at i*row
/// + q*stripe + s*state + g*4 + r.
struct MatrixLayout {
  std::size_t row, stripe, state;
  static MatrixLayout of(int Q, int groups) {
    const auto width = static_cast<std::size_t>(groups) * kLanes;
    return {static_cast<std::size_t>(Q) * 3 * width, 3 * width, width};
  }
};
enum CellState { kCellM = 0, kCellD = 1, kCellI = 2 };

/// The choices of optimal accuracy, one bit per lane.
enum Choice {
  kFromInsert,    ///< a match is entered from insertion rather than match
  kFromDeletion,  ///< a match is entered from deletion rather than either
  kFromBegin,     ///< a match is entered from B rather than any of these
  kStayInsert,    ///< an insertion is entered from insertion rather than match
  kStayDeletion,  ///< a deletion is entered from deletion rather than match
  kChoices
};

/// Posteriors above a threshold, one vector each, by row.
struct HotCells {
  float above = 0.04f;  ///< those below 0.05 are displayed as 0
  std::size_t count = 0;
  AlignedArray<std::int32_t> cells;    ///< [count]; 2 * stripe, + 1 for insertions
  AlignedArray<float> values;          ///< [count][groups * kLanes]
  std::vector<std::size_t> row_begin;  ///< of row r: [row_begin[r], row_begin[r + 1])
};

/// Buffers of decode().
struct EnvelopeSpace {
  int block_rows = 0;
  AlignedArray<float> cells;           ///< a few rows, see envelope-inl.hpp
  AlignedArray<std::uint8_t> choices;  ///< [rows][Q][kChoices][mask_bytes]
  HotCells hot;
};

/// Sampled domain segments as arrays, see clustering.cpp.
struct SegmentArrays {
  const std::int32_t *i, *j, *k, *m;
};

/// The passes for one instruction set and width.
struct Kernels {
  const char* name;
  int groups;
  int mask_bytes;                         ///< per choice of a stripe
  std::array<int, kMaxGroups> first_bit;  ///< of each group's bits in these bytes
  /// Computes Forward rows first to last, given row first-1's special states. Cells of row r go to
  /// cells + r * row_stride; row_stride 0 keeps one row, which holds row first-1 at the start.
  void (*forward)(const ForwardTables::Tables& tables, Lanes& lanes, int first, int last, float ec,
                  float ej, float* cells, std::size_t row_stride);
  /// Computes Backward rows last to first from Forward's, given row last+1 (unless it is the end):
  /// its special states, and in `cells` its M and I, which those of row `first` finally replace. M
  /// here means M times the match odds of the row's residue.
  void (*backward)(const ForwardTables::Tables& tables, Lanes& lanes, int last, int first, float ec,
                   float ej, float* cells);
  /// All of Backward of the unihit model after forward(). Prepares decode().
  void (*envelope_backward)(const ForwardTables::Tables& tables, Lanes& lanes, float ec,
                            EnvelopeSpace& space);
  /// Optimal accuracy of the same jobs, and null2 by expectation if `sums`.
  void (*decode)(const ForwardTables::Tables& tables, Lanes& lanes, float ec, bool sums,
                 EnvelopeSpace& space);
  /// Sets linked[p] to 1 if segment p of 0..count-1 is linked to segment (i, j, k, m), else to 0.
  /// Returns true if any is.
  bool (*link_segments)(const SegmentArrays& segments, std::size_t count, std::int32_t i,
                        std::int32_t j, std::int32_t k, std::int32_t m, std::uint8_t* linked);

  /// Number of floats in `cells` for one row of Forward, or for Backward.
  std::size_t scratch(int Q) const { return static_cast<std::size_t>(3 * Q * groups * kLanes); }
  std::size_t choice_row(int Q) const {
    return static_cast<std::size_t>(Q * kChoices * mask_bytes);
  }
};

/// Every instruction set that this CPU supports, best first; each with its widths, narrowest first.
std::vector<std::span<const Kernels>> kernel_sets();
/// Kernels of one width for this CPU: the widest with at most `groups` groups.
const Kernels& kernels(int groups);
/// Chooses the kernels expected to be fastest for these jobs (longest first), with at most `widest`
/// groups, and deals the jobs to their lanes.
const Kernels& deal(const EmissionRows& emission, std::span<Job> jobs, Lanes& lanes,
                    int widest = kMaxGroups);
/// Runs Forward on jobs, longest first, and keeps their special states. `odds`: of E->C and E->J.
void run_forward(const ForwardTables::Tables& tables, const EmissionRows& emission,
                 std::span<Job> jobs, const LengthModel& odds, Lanes& lanes,
                 AlignedArray<float>& cells);

}  // namespace hmmjit::domain
