// hmmscan for the program and the library: sequences against many models, reported by sequence.
#pragma once

#include <cstdint>
#include <functional>

#include "search/session.hpp"

namespace hmmjit {

struct ScanRun {
  SearchOptions search;  ///< thresholds.Z: as the user gives it
  double models = 0;     ///< their number, which is Z otherwise
  /// The models from the first on; called once for each chunk of sequences.
  std::function<Result<ModelSource>()> open_models;
  /// Takes the result of each sequence, in their order. Models are in the place of its hits.
  std::function<Status(const ModelResult&)> receive;
};

/// Searches every sequence with every model: those of a chunk (load_block) at a time, with each
/// model once. `models` of the statistics are those of one pass. A model that lacks the cutoffs
/// asked for is an error once a sequence passes its bias filter, as in hmmscan. Fails as
/// Session::search does.
///
///   HMMJIT_TRY(run_scan(session, {.search = options, .models = 2, .open_models = open,
///                                 .receive = write}, sequences, progress));
Result<SearchStatistics> run_scan(Session& session, const ScanRun& run, TargetSource& sequences,
                                  SearchProgress& progress);

}  // namespace hmmjit
