// hmmscan for the program and the library: sequences against many models, reported by sequence.
#pragma once

#include <functional>
#include <optional>

#include "search/pressed_models.hpp"
#include "search/session.hpp"

namespace hmmjit {

struct ScanRun {
  SearchOptions search;  ///< thresholds.Z: the user's, if any
  /// Counts the models, the default Z. Called at most once.
  std::function<Result<double>()> count_models;
  /// Opens the models from the first on; called once per batch of sequences.
  std::function<Result<ModelSource>()> open_models;
  /// Finds the models that pass the first filter, if there is a faster way (filter_pressed). May
  /// be empty.
  std::function<Result<std::optional<PassedModels>>(const TargetBlock& batch)> filter = {};
  /// Receives each sequence's result in order, with models in place of hits.
  std::function<Status(const ModelResult&)> receive;
};

/// Searches every sequence with every model, one batch of sequences (load_block) at a time.
/// `models` in the statistics counts each model once. A model that lacks the requested cutoffs is
/// an error once a sequence passes its bias filter, as in hmmscan. Fails as Session::search does,
/// and with kInput if the number of models changes.
///
///   HMMJIT_TRY(run_scan(session, {.search = options, .count_models = count,
///                                 .open_models = open, .receive = write}, sequences, progress));
Result<SearchStatistics> run_scan(Session& session, const ScanRun& run, TargetSource& sequences,
                                  SearchProgress& progress);

}  // namespace hmmjit
