// A model from a multiple alignment.
#pragma once

#include <optional>
#include <vector>

#include "build/aligned_rows.hpp"
#include "build/built_model.hpp"
#include "core/error.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// How; defaults are hmmbuild's for proteins.
struct AlignmentOptions {
  /// Match columns: those that are occupied enough, or those the RF annotation marks.
  enum class Columns { kOccupied, kReference } columns = Columns::kOccupied;
  float least_occupied = 0.5f;  ///< weighted fraction of residues in a match column (--symfrac)
  float fragment = 0.5f;        ///< rows of at most so many residues per column are fragments
  enum class Weights {
    kPositionBased,
    kTree,
    kClusters,
    kNone,
    kGiven
  } weights = Weights::kPositionBased;
  double weight_identity = 0.62;  ///< of clusters that share a weight
  /// Effective number of sequences.
  enum class Effective {
    kEntropy,
    kEntropyPower,
    kClusters,
    kRows,
    kSet
  } effective = Effective::kEntropy;
  double effective_set = 0;
  double relative_entropy = 0.59;  ///< target, bits per node
  double total_entropy = 45.0;     ///< target for short models, bits (--esigma)
  double effective_identity = 0.62;
  enum class Prior { kMixture, kNone, kLaplace } prior = Prior::kMixture;
  std::optional<int> most_insertions = {};  ///< mean length of insertions at most (--maxinsertlen)
};

/// Builds the model, annotation and composition included; its `needs_calibration` is set. Amino
/// alphabets only. Bit-identical to HMMER 3.4. `rows`, if given, receives the rows as they were
/// used. Fails with kInput for an alignment without rows or match columns, with RF annotation
/// missing where it is asked for, with missing data inside a row, or where an effective number
/// cannot be found.
Result<BuiltModel> build_from_alignment(const MultipleAlignment& alignment,
                                        const AlignmentOptions& options,
                                        AlignedRows* rows = nullptr);

/// Replaces emissions of masked nodes (MM annotation) by the background: the last step, after
/// calibration. As in the reference, not of the last node.
void apply_mask(Hmm& hmm);

}  // namespace hmmjit::build
