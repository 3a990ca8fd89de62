// Domains of the windows that pass the filters: Forward filter, envelopes, and their scores with
// re-estimated emissions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "domain/alignment.hpp"
#include "domain/envelopes.hpp"
#include "model/targets.hpp"
#include "nucleotide/emissions.hpp"
#include "nucleotide/windows.hpp"

namespace hmmjit::nucleotide {

/// The tables of a query for the domain stage.
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

/// A domain with coordinates in one of several sequences.
struct WindowDomain {
  std::size_t sequence;
  domain::Domain domain;
};

/// Regions of windows, found with these emissions.
struct ParsedWindows {
  std::shared_ptr<const EmissionState> emissions;
  std::vector<std::shared_ptr<const ParsedTarget>> windows;  ///< null: not known
};

/// An envelope, in residues of its window, and the emissions of its sequence.
struct Envelope {
  std::size_t window = 0;
  int first = 0, last = 0;
  const EmissionState* base = nullptr;   ///< at the beginning
  const EmissionState* later = nullptr;  ///< after the first envelope
  std::optional<domain::Domain> domain = std::nullopt;
  /// Forward's score with the model's odds, which are `later`.
  std::optional<float> normal_nats = std::nullopt;

  int length() const { return last - first + 1; }
};

/// Envelopes with match odds of their own, then some with the model's.
struct EstimatedEnvelopes {
  TargetBlock residues;         ///< a target each
  domain::EmissionRows rows;    ///< for the codes of one after the other
  std::vector<int> first_rows;  ///< of each, and the end
  /// Indices into DomainProgress of the envelopes with the model's odds.
  std::vector<std::size_t> normal;
  std::vector<const domain::EmissionRows*> normal_rows;  ///< of each
};

/// The domains of windows, found in rounds of alignment, between which a device may align.
struct DomainProgress {
  bool found = false;
  std::vector<Envelope> envelopes;  ///< in the order of the windows
  /// Envelopes to be aligned next: all, then those that their alignments have trimmed.
  std::vector<std::size_t> open;
  int rounds = 0;
};

/// Input of all steps, and the buffers of a thread.
struct DomainContext {
  const WindowModel& filters;
  DomainModel& model;
  const Options& options;
  std::span<const std::span<const Residue>> sequences;
  std::span<const Window> windows;
  DomainScratch& scratch;
  Times& times;  ///< adds what the workspace does not count
};

/// Finds the envelopes. `turns`: the number of restorations of emissions before these sequences;
/// adds those in the sequences, as long as they matter. Adds the residues past Forward to
/// `counters`. Throws domain::MatrixTooLarge, as do the others.
DomainProgress find_envelopes(const DomainContext& context, std::span<const ParsedWindows> parsed,
                              std::uint64_t& turns, FilterCounters& counters);
/// The emissions of the open envelopes; once they are trimmed, all envelopes with the model's
/// emissions as well. Null: there are none.
std::shared_ptr<const EstimatedEnvelopes> estimate_open(const DomainContext& context,
                                                        const DomainProgress& progress);
/// Aligns the open envelopes, and opens those that are trimmed, unless they have been. `scored`:
/// what a device has found with `estimated`; empty: nothing.
void align_open(const DomainContext& context, DomainProgress& progress,
                const EstimatedEnvelopes* estimated,
                std::span<const std::optional<ScoredEnvelope>> scored);
/// The domains, in the order of the windows, once no envelope is open.
std::vector<WindowDomain> finish_domains(const DomainContext& context, DomainProgress& progress);

}  // namespace hmmjit::nucleotide
