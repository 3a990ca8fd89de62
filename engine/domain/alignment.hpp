// Optimal accuracy traceback and the alignment shown for a domain, as in HMMER3 (Eddy 2011).
#pragma once

#include <vector>

#include "domain/kernels.hpp"
#include "model/parsed_target.hpp"

namespace hmmjit::domain {

/// An envelope as Kernels::decode leaves it.
struct AccuracyChoices {
  const ForwardTables::Tables& tables;
  const Kernels& kernel;
  const Lanes& lanes;
  const EnvelopeSpace& space;
  const Job& job;
};

/// True if the cell of row i and node k made this choice.
bool chose(const AccuracyChoices& choices, Choice choice, int i, int k);
/// The posterior of the cell; 0 where it is not above HotCells::above.
float posterior(const AccuracyChoices& choices, bool insert, int i, int k);

/// A state of a path.
struct PathState {
  enum State : char { kM, kD, kI } state;
  int i, k;
  float posterior;
};
/// Sets `path` to the most accurate path, from end to begin; empty if there is none, which only
/// unusable probabilities can cause.
void trace(const AccuracyChoices& choices, std::vector<PathState>& path);
/// The posterior as shown: tenths, or `*`.
char posterior_code(float p);

/// Buffers of one thread.
class Aligner {
 public:
  /// Fills coordinates and alignment of `domain` (ienv set). False if the trace has no match, which
  /// only unusable probabilities can cause.
  bool align(const AccuracyChoices& choices, const Hmm& hmm, Domain& domain);
  /// The same for an envelope of these residues whose path is known; its rows of `emission` begin
  /// with `first_row`.
  bool align(const ForwardTables::Tables& tables, const EmissionRows& emission, int first_row,
             const Residue* residues, const ScoredEnvelope& found, const Hmm& hmm, Domain& domain);

 private:
  bool show(const ForwardTables::Tables& tables, const EmissionRows& emission, int first_row,
            const Residue* residues, const Hmm& hmm, Domain& domain);

  std::vector<PathState> path_;  // from the end of the first domain to its begin
};

}  // namespace hmmjit::domain
