// Domains of the windows that pass the filters: Forward filter, envelopes, and their scores with
// re-estimated emissions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "domain/alignment.hpp"
#include "domain/envelopes.hpp"
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

/// What is known of windows, found with these emissions.
struct ParsedWindows {
  std::shared_ptr<const EmissionState> emissions;
  std::vector<std::shared_ptr<const ParsedTarget>> windows;  ///< null: not known
};

/// Domains of `windows`, in their order. `turns`: the number of restorations of emissions before
/// these sequences; adds those in the sequences, as long as they matter. Adds the residues past
/// Forward to `counters`, and to `times` what the workspace does not count. Throws
/// domain::MatrixTooLarge.
std::vector<WindowDomain> find_domains(const WindowModel& filters, DomainModel& model,
                                       const Options& options,
                                       std::span<const std::span<const Residue>> sequences,
                                       std::span<const Window> windows,
                                       std::span<const ParsedWindows> parsed, std::uint64_t& turns,
                                       DomainScratch& scratch, Counters& counters, Times& times);

}  // namespace hmmjit::nucleotide
