// The multiple alignment that paths of sequences through a model imply.
#pragma once

#include <span>

#include "align/sequence_aligner.hpp"
#include "build/aligned_rows.hpp"
#include "core/error.hpp"
#include "model/multiple_alignment.hpp"
#include "model/targets.hpp"

namespace hmmjit::align {

/// Fails with kInput unless `hmm` was built from `alignment` and says which column each node is.
Status check_source(const Hmm& hmm, const MultipleAlignment& alignment);

/// A column for each node of the model and the insertions between them. `source`, if given, has
/// passed check_source(): its rows come first, as they are and without posteriors. `trimmed`:
/// without the residues before the first node and after the last.
build::AlignedRows align_to_model(const Hmm& hmm, const MultipleAlignment* source,
                                  std::span<const TargetView> sequences,
                                  std::span<const SequencePath> paths, bool trimmed);

}  // namespace hmmjit::align
