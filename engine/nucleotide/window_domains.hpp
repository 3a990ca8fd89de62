// Domains in the windows that pass the filters: Forward filter, envelopes, and their scores with
// re-estimated emissions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "domain/alignment.hpp"
#include "domain/envelopes.hpp"
#include "gpu/cascade.hpp"
#include "model/targets.hpp"
#include "nucleotide/emissions.hpp"
#include "nucleotide/windows.hpp"
#include "search/verifier.hpp"

namespace hmmjit::nucleotide {

/// A query's tables for the domain stage.
struct DomainModel {
  DomainModel(const SearchModel& model, int window_length)
      : W(window_length), tables(model), emissions(tables) {}
  int W;
  domain::ForwardTables tables;
  Emissions emissions;
};

/// Buffers of one thread.
struct DomainScratch {
  domain::Workspace workspace;
  domain::EnvelopeScorer scorer;
  domain::Aligner aligner;
  domain::EmissionRows rows;
  domain::Lanes lanes;
  AlignedArray<float> cells;
};

/// A domain, with coordinates in one of several sequences.
struct WindowDomain {
  std::size_t sequence;
  domain::Domain domain;
};

/// Regions in windows, found with these emissions.
struct ParsedWindows {
  std::shared_ptr<const EmissionState> emissions;
  std::vector<std::shared_ptr<const ParsedTarget>> windows;  ///< null: not known
  gpu::UsedKernels kernels;
};

/// An envelope, in residues of its window, and the emissions of its sequence.
struct Envelope {
  std::size_t window = 0;
  int first = 0, last = 0;
  const EmissionState* base = nullptr;   ///< at the beginning of the sequence
  const EmissionState* later = nullptr;  ///< after the first envelope
  std::optional<domain::Domain> domain = std::nullopt;
  /// Forward's score with the model's odds, which are `later`.
  std::optional<float> normal_nats = std::nullopt;

  int length() const { return last - first + 1; }
};

/// A device's input: envelopes with their own match odds, then some envelopes with the model's.
struct EstimatedEnvelopes {
  TargetBlock residues;         ///< one target per envelope
  domain::EmissionRows rows;    ///< for the codes of one envelope after the other
  std::vector<int> first_rows;  ///< of each envelope, and the end
  /// Indices into DomainProgress::envelopes of those with the model's odds.
  std::vector<std::size_t> normal;
  std::vector<const domain::EmissionRows*> normal_rows;  ///< for each of these
};

/// Progress of the domains of windows: alignment rounds, each on a device or the CPU.
struct DomainProgress {
  bool found = false;
  std::vector<Envelope> envelopes;  ///< in the order of the windows
  /// Envelopes to align next: first all, then those trimmed by their alignments.
  std::vector<std::size_t> open;
  int rounds = 0;
};

/// Input of all steps, and the buffers of one thread.
struct DomainContext {
  const WindowModel& filters;
  DomainModel& model;
  const Options& options;
  std::span<const std::span<const Residue>> sequences;
  std::span<const Window> windows;
  DomainScratch& scratch;
  Times& times;                              ///< receives the times that the workspace lacks
  search_run::Verifier* verifier = nullptr;  ///< checks some of a device's answers
};

/// Finds the envelopes. `turns`: number of restorations of emissions before these sequences; adds
/// those in the sequences, while they matter. Adds the residues that pass Forward to `counters`.
/// Like the functions below, throws domain::MatrixTooLarge.
DomainProgress find_envelopes(const DomainContext& context, std::span<const ParsedWindows> parsed,
                              std::uint64_t& turns, FilterCounters& counters);
/// The open envelopes with their own emissions and, once trimmed, also all envelopes with the
/// model's. Null: no envelopes.
std::shared_ptr<const EstimatedEnvelopes> estimate_open(const DomainContext& context,
                                                        const DomainProgress& progress);
/// Aligns the open envelopes. The first call then opens those that get trimmed. `scored`: a
/// device's results for `estimated`, by `kernels`; empty: none.
void align_open(const DomainContext& context, DomainProgress& progress,
                const EstimatedEnvelopes* estimated,
                std::span<const std::optional<ScoredEnvelope>> scored,
                const gpu::UsedKernels& kernels);
/// The domains in window order; call it once no envelope is open.
std::vector<WindowDomain> finish_domains(const DomainContext& context, DomainProgress& progress);

}  // namespace hmmjit::nucleotide
