// Stochastic tracebacks of a multidomain region: sampled domains, and the null2 correction by
// sampling, as in HMMER3 (Eddy 2011).
//
// The 200 traces of a region must match HMMER's choice by choice, or every later random
// number would be used differently. A choice compares a deviate u with running sums of normalised
// weights, in a fixed order and precision. Here it is first made with cheap sums of bounded error;
// only if u lies closer to a boundary than that bound (about once in 10^5 choices) does HMMER's own
// arithmetic decide. The results are therefore always identical.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "domain/clustering.hpp"
#include "domain/four_floats.hpp"
#include "domain/kernels.hpp"
#include "model/random.hpp"

namespace hmmjit::domain {

/// The Forward matrix of a region: one group of its layout.
struct RegionMatrix {
  const ForwardTables::Tables* tables;
  const Job* job;
  SpecialRows special;
  const float* cells;  ///< first cell of the group in row 0
  MatrixLayout layout;
  float ec, ej;
};

/// The last node of a domain, and whether it is a match or a deletion.
struct Exit {
  int node;
  bool in_match;
};
/// The exit from a matrix row that the deviate `u` chooses by HMMER's own arithmetic among
/// the row's cells times `norm`.
Exit exit_of_row(const float* row, const MatrixLayout& layout, int Q, float norm, double u);
/// The same from the running sums of add_exits(); nullopt if rounding might decide.
std::optional<Exit> clear_exit_of_row(const float* row, const MatrixLayout& layout, int Q,
                                      float norm, std::span<const double> sums, double u);
/// Writes the running sums of exit probabilities, one for each kExitBlock stripes.
void add_exits(const float* row, const MatrixLayout& layout, int Q, float norm, double* out);
inline constexpr int kExitBlock = 4;

/// Buffers of one thread.
class Ensemble {
 public:
  static constexpr int kTraces = 200;

  /// Samples kTraces traces with `random`. Segments are in target coordinates (region position plus
  /// `offset`). `correction`: receives log null2 odds of region positions 1..L at [0..L-1]; null if
  /// not wanted.
  const std::vector<Segment>& sample(const RegionMatrix& region, LinearCongruential& random,
                                     int offset, float* correction);

  /// Log null2 odds from the sums of the odds over all traces; may be the same array.
  static void to_correction(std::span<const float> sums, float* correction);

 private:
  void prepare(const RegionMatrix& region);
  void sample_trace(const RegionMatrix& region, LinearCongruential& random, int trace, int offset,
                    float* correction);
  Exit choose_exit(const RegionMatrix& region, int i, double u);
  enum class State;
  struct Walk;
  void visit(Walk& walk);
  const float* cell(const RegionMatrix& region, int i, int k) const;
  State leave_flank(const RegionMatrix& region, bool in_c, Walk& walk) const;
  State match_run(const RegionMatrix& region, Walk& walk);
  State leave_deletion(const RegionMatrix& region, Walk& walk) const;
  State leave_insertion(const RegionMatrix& region, Walk& walk);
  State leave_begin(const RegionMatrix& region, Walk& walk, float* correction);
  struct Entry;
  std::span<Entry> entries(int i, int k);
  static void add_outside(int first, int last, float* correction);
  void add_null2(const RegionMatrix& region, int visit_count, int emitted, int first, int last,
                 float* correction);

  std::vector<Segment> segments_;
  std::vector<std::int32_t> offset_of_;  // offset of node k in a row
  // Deviates below these clearly choose C(i-1) before C(i), or J(i-1) before J(i).
  std::vector<std::uint32_t> stay_c_, stay_j_;

  // Sums of add_exits(), computed when the first trace leaves through a row.
  std::vector<std::int32_t> exit_slot_;  // by row, -1: not made yet
  std::vector<double> exits_;
  int exit_blocks_ = 0;

  // The predecessor of a match (B, M, I or D) by the deviate in units of 2^-32: clearly M for
  // `width` deviates from `low` on; I and D begin at `i` and `d`. Computed when a trace first asks
  // for it, because the traces of a region mostly follow the same diagonals. Blocks of a diagonal
  // are allocated on demand, in trace order.
  struct Entry {
    std::uint32_t low = 0, width = 0, i = 0, d = 0;  // low 0: not yet computed
    static Entry of(const FourFloats& weights);
    int choose(std::uint32_t deviate) const;  // -1: unclear
  };
  static constexpr int kEntryBlock = 16;
  int last_node_ = 0, last_row_ = 0;
  std::size_t entry_blocks_ = 0;           // of a diagonal
  std::vector<std::int32_t> entry_block_;  // by diagonal and block, -1: not allocated yet
  std::vector<Entry> entries_;

  struct Visit {
    std::int32_t k;
    float count;
  };
  bool null2_ = false;         // needs visits
  std::vector<Visit> visits_;  // in the current segment, from end to start
  bool all_canonical_ = true;
};

}  // namespace hmmjit::domain
