// Optimal accuracy traceback and the alignment shown for a domain, as HMMER3 does (Eddy 2011).
#pragma once

#include <vector>

#include "domain/kernels.hpp"
#include "model/parsed_target.hpp"

namespace hmmjit::domain {

/// One envelope after optimal_accuracy: rows 0..L of both matrices, one group of them.
struct AccuracyMatrices {
  const ForwardTables::Tables* tables;
  const Job* job;        ///< factor and accuracy rows filled
  const float* product;  ///< Forward * Backward
  const float* accuracy;
  MatrixLayout layout;
};

/// Buffers of one thread.
class Aligner {
 public:
  /// Fills coordinates, accuracy and alignment of `domain` (ienv set). False when the trace holds
  /// no match, which only unusable probabilities can cause.
  bool align(const AccuracyMatrices& matrices, const Hmm& hmm, Domain& domain);
  /// The same for an envelope of these residues whose path somebody else has found.
  bool align(const ForwardTables::Tables& tables, const Residue* residues,
             const ScoredEnvelope& found, const Hmm& hmm, Domain& domain);

 private:
  enum class State : char { kM, kD, kI };
  struct Element {
    State state;
    int i, k;
    char posterior;  // as shown
  };
  void trace(const AccuracyMatrices& matrices);
  bool show(const ForwardTables::Tables& tables, const Residue* residues, const Hmm& hmm,
            Domain& domain);

  std::vector<Element> path_;  // from the end of the first domain to its begin
};

}  // namespace hmmjit::domain
