// Writes part files (docs/part-format.md).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/hidden.hpp"
#include "io/target_database.hpp"
#include "parts/part_format.hpp"
#include "search/search.hpp"
#include "search/session.hpp"

namespace hmmjit::parts {

/// Writes one part, model by model. The file gets its name when finish() succeeds. One thread at a
/// time.
class PartWriter {
 public:
  /// Fails with kOutput.
  static Result<PartWriter> create(const std::string& path, const PartSettings& settings,
                                   const PartPlace& place);

  /// `head` must have the final totals; this sets hit_bytes, domains and the position of the hits.
  /// Stores the hits of `result` that are reported in the part.
  Status add_model(ModelHead head, const ModelResult& result);
  /// `last_model`, `models`: the place's final values. Returns the digest of the content, which
  /// does not depend on threads, memory, device or the order of merging.
  Result<Digest> finish(const PartOrigin& origin, std::uint64_t last_model, std::uint64_t models);

 private:
  struct State;
  explicit PartWriter(Hidden<State> state) : state_(std::move(state)) {}
  Hidden<State> state_;
};

/// A source of models that takes notes on each model for a part.
class NotedModels {
 public:
  NotedModels(ModelSource source, const Thresholds& rules, std::uint64_t first)
      : source_(std::move(source)), rules_(rules), first_(first) {}
  /// Same as ModelSource.
  Result<std::optional<Query>> next();
  struct Note {
    Digest digest;
    std::optional<Cutoff> cutoff;
  };
  /// The note on model number `n`, from 0. Thread-safe.
  Note note(std::size_t n) const;
  std::uint64_t first() const { return first_; }

 private:
  ModelSource source_;
  Thresholds rules_;
  std::uint64_t first_;  // index of the source's first model in the model file
  mutable std::mutex mutex_;
  std::vector<Note> notes_;
};

/// Stores the results of a search in a part.
class PartSink final : public ResultSink {
 public:
  PartSink(PartWriter& writer, const NotedModels& models) : writer_(writer), models_(models) {}
  Status receive(const ModelResult& result) override;
  bool takes_stored_hits() const override { return true; }
  /// Index of the model after the last one received.
  std::uint64_t last_model() const { return models_.first() + received_; }

 private:
  PartWriter& writer_;
  const NotedModels& models_;
  std::uint64_t received_ = 0;
};

/// The settings of a search against this database.
PartSettings settings_of(const SearchOptions& options, const DatabaseSummary& database);

/// Sets the targets of `place` from `place.part`. Fails as the database does.
Status place_targets(const TargetDatabase& database, PartPlace& place);

struct PartJob {
  std::string path;  ///< path of the part file
  PartSettings settings;
  PartPlace place;
  PartOrigin origin;
};
/// Searches a part's models against its targets, a range of the database, and writes the part file.
Result<SearchStatistics> search_part(Session& session, SearchOptions options,
                                     const ModelSource& models,
                                     std::shared_ptr<const TargetDatabase> database,
                                     const PartJob& job, SearchProgress& progress);

}  // namespace hmmjit::parts
