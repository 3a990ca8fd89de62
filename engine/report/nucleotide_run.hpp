// nhmmer for the program and the library: searches models in passes over long targets.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "report/nucleotide_report.hpp"

namespace hmmjit {

/// A query with the thresholds of `rules`. Fails with kInput if its model lacks the requested
/// cutoffs or is too long.
Result<nucleotide::Query> make_nucleotide_query(Hmm hmm, int window_length,
                                                const Thresholds& rules);

/// Residues of the longest target that is searched within `bound` bytes: nhmmer holds two targets
/// and the bottom strand of one, beside the models.
std::uint64_t longest_target(std::uint64_t bound);

/// Number of model positions, one kilobyte each, in a pass over the targets within `bound` bytes.
std::uint64_t positions_of_pass(std::uint64_t bound);

/// Adds the times of a search's stages.
void add_times(SearchStatistics& statistics, const nucleotide::Times& times);

struct NucleotideRun {
  nucleotide::Options options;
  /// Returns the next model; nullopt after the last.
  std::function<Result<std::optional<nucleotide::Query>>()> next_query;
  /// Receives each result in model order.
  std::function<Status(const ModelResult&)> receive;
  std::uint64_t first_query = 0;  ///< number of the first model; earlier runs searched others
  std::string target_file = {};              ///< for messages
  const SearchOptions& search;               ///< `memory` bounds resident bytes except hits
  nucleotide::DeviceScan* device = nullptr;  ///< null: CPU only
};

/// Searches all models in one pass over the targets, or in several if they exceed the memory bound,
/// which also limits the targets read ahead, but not hits. Fails as nucleotide::Search and
/// `receive` do, with kInput for an empty target if each target is searched on its own, and with
/// kResources for a target that does not fit.
Result<SearchStatistics> run_nucleotides(NucleotideRun run, TargetSource& targets,
                                         SearchProgress& progress);

}  // namespace hmmjit
