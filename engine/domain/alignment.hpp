// Optimal accuracy traceback and the alignment shown for a domain, as HMMER3 does (Eddy 2011).
#pragma once

#include <vector>

#include "domain/kernels.hpp"
#include "model/parsed_target.hpp"

namespace hmmjit::domain {

/// An envelope after Kernels::decode.
struct AccuracyChoices {
  const ForwardTables::Tables& tables;
  const Kernels& kernel;
  const Lanes& lanes;
  const EnvelopeSpace& space;
  const Job& job;
};

/// Of the cell of row i and node k.
bool chose(const AccuracyChoices& choices, Choice choice, int i, int k);
/// Its posterior; 0 where it shows as 0 tenths.
float posterior(const AccuracyChoices& choices, bool insert, int i, int k);

/// Buffers of one thread.
class Aligner {
 public:
  /// Fills coordinates and alignment of `domain` (ienv set). False when the trace holds no match,
  /// which only unusable probabilities can cause.
  bool align(const AccuracyChoices& choices, const Hmm& hmm, Domain& domain);
  /// The same for an envelope of these residues whose path is known.
  bool align(const ForwardTables::Tables& tables, const Residue* residues,
             const ScoredEnvelope& found, const Hmm& hmm, Domain& domain);

 private:
  enum class State : char { kM, kD, kI };
  struct Element {
    State state;
    int i, k;
    char posterior;  // as shown
  };
  void trace(const AccuracyChoices& choices);
  bool show(const ForwardTables::Tables& tables, const EmissionRows& emission, int first_row,
            const Residue* residues, const Hmm& hmm, Domain& domain);

  std::vector<Element> path_;  // from the end of the first domain to its begin
};

}  // namespace hmmjit::domain
