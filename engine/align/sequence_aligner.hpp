// Aligns sequences to a model by optimal accuracy, as hmmalign does.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "build/row_paths.hpp"
#include "core/error.hpp"
#include "core/per_thread.hpp"
#include "domain/domain.hpp"
#include "domain/envelopes.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace hmmjit::align {

/// The path of a sequence; empty if the sequence has no residues. Residues before and after the
/// domain are insertions after node 0 and node M.
struct SequencePath {
  std::vector<build::PathElement> elements;
  std::vector<float> posteriors;  ///< one per element; 0 for elements without a residue
};

/// Aligns to the local model with one domain per sequence. Threads may share it.
class SequenceAligner {
 public:
  explicit SequenceAligner(const Hmm& hmm);
  const Hmm& hmm() const { return model_->hmm; }

  /// The path of maximum expected accuracy for each sequence (Holmes 1998; Kall, Krogh & Sonnhammer
  /// 2005), bit-identical to HMMER 3.4. Fails with kInput if the model cannot emit a sequence.
  /// Needs 10 bytes * residues * M for the longest sequence, or 60 if probabilities overflow
  /// (several domains).
  Result<std::vector<SequencePath>> align(std::span<const TargetView> sequences) const;

 private:
  std::shared_ptr<const SearchModel> model_;
  domain::ForwardTables tables_;
  mutable PerThread<domain::EnvelopeScorer> scorers_;  // keep their memory between calls
};

}  // namespace hmmjit::align
