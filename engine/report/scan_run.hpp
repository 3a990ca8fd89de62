// hmmscan for the program and the library: sequences against many models, reported by sequence.
#pragma once

#include <functional>

#include "search/pressed_models.hpp"
#include "search/session.hpp"

namespace hmmjit {

struct ScanRun {
  SearchOptions search;  ///< thresholds.Z: the user's, if any
  /// Opens the models from the first on, or those that some sequence of a batch may match. Called
  /// once per batch.
  std::function<Result<SelectedModels>(const TargetBlock& batch)> open_models;
  /// Receives each sequence's result in order, with models in place of hits.
  std::function<Status(const ModelResult&)> receive;
};

/// Searches every sequence with every model, one batch of sequences (load_block) at a time.
/// `models` in the statistics counts each model once. A model that lacks the requested cutoffs is
/// an error once a sequence passes its bias filter, as in hmmscan. Fails as Session::search does,
/// and with kInput if the number of models changes.
///
///   HMMJIT_TRY(run_scan(session, {.search = options, .open_models = open, .receive = write},
///                       sequences, progress));
Result<SearchStatistics> run_scan(Session& session, const ScanRun& run, TargetSource& sequences,
                                  SearchProgress& progress);

}  // namespace hmmjit
