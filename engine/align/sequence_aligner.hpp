// Aligns sequences to a model by optimal accuracy, as hmmalign does.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "build/row_paths.hpp"
#include "core/error.hpp"
#include "domain/domain.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace hmmjit::align {

/// The path of a sequence. Residues before and after the domain are insertions after node 0 and
/// node M. Empty for a sequence without residues.
struct SequencePath {
  std::vector<build::PathElement> elements;
  std::vector<float> posteriors;  ///< of each element; 0 for those without a residue
};

/// Aligns to the local model, one domain per sequence. Immutable; threads may share it.
class SequenceAligner {
 public:
  explicit SequenceAligner(const Hmm& hmm);
  const Hmm& hmm() const { return model_->hmm; }

  /// The path of the greatest expected accuracy of each sequence (Holmes 1998; Kall, Krogh &
  /// Sonnhammer 2005), bit-identical to HMMER 3.4. Fails with kInput for a sequence that the model
  /// cannot emit. Needs 10 bytes * residues * M for the longest sequence, or 60 if probabilities
  /// overflow, as they may with several domains.
  Result<std::vector<SequencePath>> align(std::span<const TargetView> sequences) const;

 private:
  std::shared_ptr<const SearchModel> model_;
  domain::ForwardTables tables_;
};

}  // namespace hmmjit::align
