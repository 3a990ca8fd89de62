// The float dynamic programming passes, compiled once per instruction set. Each sequence keeps
// its own four lanes; a vector of 4*G floats holds G sequences of one model side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "domain/tables.hpp"

namespace hmmjit::domain {

inline constexpr int kMaxGroups = 8;

/// Special states and scale factor of one row of Forward or Backward.
struct alignas(32) SpecialRow {
  float E, N, J, B, C, scale, unused0, unused1;  // two groups of four lanes
};

/// Special states of one row of the optimal accuracy matrix, and the posterior probabilities that
/// N, J and C emit the row's residue.
struct alignas(32) AccuracyRow {
  float E, N, J, B, C, posterior_n, posterior_j, posterior_c;
};

/// One sequence, region or envelope in a Forward/Backward pass.
struct Job {
  const Residue* residues = nullptr;
  int L = 0;
  float loop = 0, move = 0;         ///< N, C, J odds
  SpecialRow* forward = nullptr;    ///< [L + 1], written by Forward (may be null for parsers)
  SpecialRow* backward = nullptr;   ///< [L + 1], written by Backward
  AccuracyRow* accuracy = nullptr;  ///< [L + 1], written by optimal accuracy
  float* factor = nullptr;          ///< [L + 1] posterior factors t(i), read by optimal accuracy
  float* weight_match = nullptr;    ///< [Q * 4] posterior match sums over rows, or null
  float* weight_insert = nullptr;   ///< [Q * 4]
  float log_scale = 0;              ///< sum of the logs of the scale factors
  float last_c = 0;                 ///< C(L), scaled
  bool own_scale = false;           ///< Backward left Forward's scale factors
};

/// Cells in a matrix of G groups: row i, stripe q, state s, group g, lane r are at
/// i*row + q*stripe + s*state + g*4 + r.
struct MatrixLayout {
  std::size_t row, stripe, state;
  static MatrixLayout of(int Q, int groups) {
    const auto width = static_cast<std::size_t>(groups) * kLanes;
    return {static_cast<std::size_t>(Q) * 3 * width, 3 * width, width};
  }
};
enum CellState { kCellM = 0, kCellD = 1, kCellI = 2 };

/// Sampled domain segments as arrays, see clustering.cpp.
struct SegmentArrays {
  const std::int32_t *i, *j, *k, *m;
};

struct Kernels {
  const char* name;
  int groups;
  /// Forward over any number of jobs with rows kept only as far as needed. A group that
  /// finishes takes the next job. `scratch`: Q*3*4*groups floats.
  void (*forward_parser)(const ForwardTables::Tables& tables, Job* jobs, int count, float ec,
                         float ej, float* scratch);
  /// Backward over jobs whose `forward` rows are filled. Same scratch.
  void (*backward_parser)(const ForwardTables::Tables& tables, Job* jobs, int count, float ec,
                          float ej, float* scratch);
  /// A part of Forward over one job: rows first+1 to last, which go to rows[1] and on. rows[0] is
  /// the first and `cells` (Q*3*4 floats) are its cells, zero for row 0; on return those of the
  /// last. Adds to the job's log_scale.
  void (*forward_part)(const ForwardTables::Tables& tables, Job& job, int first, int last, float ec,
                       float ej, float* cells, SpecialRow* rows);
  /// The same of Backward, from row `last` down to first+1, and row 0 where `first` is 0; the job's
  /// `forward` holds rows from `first` on. `next` and `cells`: row last+1, zero after the end.
  void (*backward_part)(const ForwardTables::Tables& tables, Job& job, int first, int last,
                        float ec, float ej, float* cells, const SpecialRow& next, SpecialRow* rows);
  /// Forward of up to `groups` jobs with every cell kept: `matrix` holds max(L)+1 rows.
  void (*forward_full)(const ForwardTables::Tables& tables, Job* jobs, int count, float ec,
                       float ej, float* matrix);
  /// Backward of the same jobs; replaces M and I of the matrix by Forward * Backward.
  /// `scratch` as for the parsers.
  void (*backward_product)(const ForwardTables::Tables& tables, Job* jobs, int count, float ec,
                           float ej, float* matrix, float* scratch);
  /// Sums of the posterior M and I over rows 1..L into weight_match, weight_insert.
  void (*posterior_sums)(const ForwardTables::Tables& tables, Job* jobs, int count,
                         const float* matrix);
  /// Optimal accuracy of the unihit model from the products left by backward_product.
  void (*optimal_accuracy)(const ForwardTables::Tables& tables, Job* jobs, int count,
                           const float* product, float* accuracy);
  /// linked[p] = 1 where segment p of 0..count-1 is linked to the segment (i, j, k, m), else 0.
  /// Lengths below 2^22.
  void (*link_segments)(const SegmentArrays& segments, std::size_t count, std::int32_t i,
                        std::int32_t j, std::int32_t k, std::int32_t m, std::uint8_t* linked);
};

/// Every instruction set this CPU can run, best first; in each the widths, narrowest first.
std::vector<std::span<const Kernels>> kernel_sets();
/// Kernels of one width for this CPU: the widest with at most `groups` groups.
const Kernels& kernels(int groups);

}  // namespace hmmjit::domain
