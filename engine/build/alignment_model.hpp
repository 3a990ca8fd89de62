// Builds a model from a multiple alignment.
#pragma once

#include <optional>
#include <vector>

#include "build/aligned_rows.hpp"
#include "build/built_model.hpp"
#include "core/error.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// Defaults are hmmbuild's.
struct AlignmentOptions {
  /// Occupancy or RF annotation determines the match columns.
  enum class Columns { kOccupied, kReference } columns = Columns::kOccupied;
  float least_occupied = 0.5f;  ///< weighted fraction of residues in a match column (--symfrac)
  float fragment = 0.5f;        ///< rows with at most this many residues per column are fragments
  enum class Weights {
    kPositionBased,
    kTree,
    kClusters,
    kNone,
    kGiven
  } weights = Weights::kPositionBased;
  double weight_identity = 0.62;  ///< threshold for Weights::kClusters
  /// Effective number of sequences.
  enum class Effective {
    kEntropy,
    kEntropyPower,
    kClusters,
    kRows,
    kSet
  } effective = Effective::kEntropy;
  double effective_set = 0;
  /// Target, bits per node; unset: 0.59 for proteins, 0.62 for nucleotides.
  std::optional<double> relative_entropy = {};
  double total_entropy = 45.0;  ///< target for short models, bits (--esigma)
  double effective_identity = 0.62;
  enum class Prior { kMixture, kNone, kLaplace } prior = Prior::kMixture;
  std::optional<int> most_insertions = {};  ///< maximum mean length of insertions (--maxinsertlen)
};

/// Builds the model with its annotation and composition, and sets `needs_calibration`.
/// Bit-identical to HMMER 3.4. `rows`, if given, receives the rows as used. Fails with kInput if
/// the alignment has no rows or match columns, if RF is required but missing, if a row has missing
/// data inside, or if no effective number is found.
Result<BuiltModel> build_from_alignment(const MultipleAlignment& alignment,
                                        const AlignmentOptions& options,
                                        AlignedRows* rows = nullptr);

/// Checksum of the residues, as in the CKSUM line of profile files.
std::uint32_t checksum_of(const MultipleAlignment& alignment);

/// Replaces emissions of masked nodes (MM annotation) by the background. Call it last, after
/// calibration. Like HMMER, leaves the last node unchanged.
void apply_mask(Hmm& hmm);

}  // namespace hmmjit::build
