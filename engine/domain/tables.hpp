// Striped float tables of one model: the four-lane layout of Farrar (2007), node k = r*Q + q + 1
// in lane r of vector q.
#pragma once

#include <vector>

#include "core/aligned.hpp"
#include "domain/domain.hpp"
#include "domain/lanes.hpp"

namespace hmmjit::domain {

/// Number of rows in the emission table; rows of unused codes (padding) are all zero.
inline constexpr int kCodeRows = 32;

/// Transition vectors of one stripe as Forward reads them: *_in lead into the node of the cell,
/// the others out of it.
struct ForwardStripe {
  float bm[kLanes], mm_in[kLanes], im_in[kLanes], dm_in[kLanes];
  float mi[kLanes], ii[kLanes], md[kLanes], dd[kLanes];
};
/// As Backward reads them: everything out of the node of the cell, bm into it.
struct BackwardStripe {
  float mm[kLanes], im[kLanes], dm[kLanes], bm[kLanes];
  float mi[kLanes], ii[kLanes], md[kLanes], dd[kLanes];
};
/// All ones if the transition's odds are positive, else zero: optimal accuracy only needs to know
/// whether a transition exists.
struct MaskStripe {
  std::uint32_t bm[kLanes], mm_in[kLanes], im_in[kLanes], dm_in[kLanes];
  std::uint32_t mi[kLanes], ii[kLanes], md[kLanes], dd[kLanes];
  std::uint32_t node[kLanes];  ///< all ones if there is a node
};
/// Scalar transitions of node k for tracebacks.
struct NodeTransitions {
  float bm, mm_in, im_in, dm_in;  ///< weights of M(k): from B, M, I, D (k-1)
  float md_in, dd_in;             ///< into D(k), from M, D (k-1)
  float mi, ii;                   ///< into I(k), from M, I (k)
};

/// Match odds in stripes, one row per code of a model; in Kernels possibly those of several
/// consecutive tables, see Job::first_row.
struct EmissionRows {
  AlignedArray<float> odds;            ///< [rows][Q][kLanes]
  AlignedArray<float> deletion_bound;  ///< [rows]; DeletionBounds::forward

  void zero(std::size_t rows, int Q) {
    odds.zero(rows * static_cast<std::size_t>(Q * kLanes));
    deletion_bound.zero(rows);
  }
  const float* row(std::size_t row, int Q) const {
    return odds.data() + row * static_cast<std::size_t>(Q * kLanes);
  }
};

struct ForwardTables::Tables {
  int M = 0;
  int Q = 0;
  int K = 0;
  int Kp = 0;
  const Alphabet* alphabet = nullptr;
  /// True if every entry and every transition between nodes exists, as in nearly all models.
  bool plain = true;
  AlignedArray<ForwardStripe> forward;    ///< [Q]
  AlignedArray<BackwardStripe> backward;  ///< [Q]
  AlignedArray<MaskStripe> mask;          ///< [Q]
  EmissionRows emission;                  ///< kCodeRows rows
  AlignedArray<NodeTransitions> nodes;    ///< [M + 1], index k
  /// Match odds of node k for the K residues: [M + 1][kMaxBases], zero padded.
  AlignedArray<float> node_match;
  /// DeletionBounds::backward.
  float backward_bound = -1;

  const float* match_row(int code) const { return emission.row(static_cast<std::size_t>(code), Q); }
  int stripe_of(int k) const { return (k - 1) % Q; }
  int lane_of(int k) const { return (k - 1) / Q; }
};

}  // namespace hmmjit::domain
