// Multiple alignments of sequences, from their paths through a model.
#pragma once

#include <span>

#include "align/sequence_aligner.hpp"
#include "build/aligned_rows.hpp"
#include "core/error.hpp"
#include "model/multiple_alignment.hpp"
#include "model/targets.hpp"

namespace hmmjit::align {

/// Fails with kInput unless `hmm` was built from `alignment` and maps its nodes to columns.
Status check_source(const Hmm& hmm, const MultipleAlignment& alignment);

/// Aligns sequences by their paths: a column per node, and columns for insertions in between.
/// `source`, if given, must have passed check_source(); its rows come first, unchanged and without
/// posteriors. `trimmed` omits the residues before the first node and after the last.
build::AlignedRows align_to_model(const Hmm& hmm, const MultipleAlignment* source,
                                  std::span<const TargetView> sequences,
                                  std::span<const SequencePath> paths, bool trimmed);

}  // namespace hmmjit::align
