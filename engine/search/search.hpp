// The search pipeline: many models against one set of targets.
//
//   models  --> set-up --+
//                        +--> filters --> survivors --> scoring --> hits --> thresholds --> sink
//   targets --> blocks --+
//
// Targets are read once and stay in memory while they fit. If they do not, as many models as fit
// form a batch, and the targets are read once for each batch. Results do not depend on threads,
// blocks or batches, because every target is judged with its own position in the input.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/mutex.hpp"
#include "model/hmm.hpp"
#include "search/hits.hpp"
#include "search/host_filters.hpp"
#include "search/options.hpp"
#include "search/target_source.hpp"

namespace hmmjit {

class HitSource;

/// Name, accession and description of a sequence that a model is built from.
QueryNames names_of(const TargetView& sequence);

/// A model to be searched with.
struct Query {
  Query(Hmm model) : hmm(std::move(model)) {}  // NOLINT: a model is a query
  Query(Hmm model, QueryNames names) : hmm(std::move(model)), sequence(std::move(names)) {}
  Query(std::shared_ptr<const PreparedModel> kept) : prepared(std::move(kept)) {}  // NOLINT
  const Hmm& model() const { return prepared != nullptr ? prepared->hmm() : hmm; }
  Hmm hmm;
  std::shared_ptr<const PreparedModel> prepared = {};  ///< in place of `hmm`; may be null
  std::optional<Cutoff> cutoff = {};                   ///< in place of the model's own
  /// Names of the sequence that the model was built from, which reports then name instead.
  std::optional<QueryNames> sequence;
  std::optional<Recipient> recipient = {};  ///< if not the sink of the whole search
};

/// The properties of a model that reports show.
struct ModelInfo {
  std::string name;
  std::optional<std::string> accession, description;
  int M = 0;
  std::string consensus = {};  ///< M characters
  /// Where the above names the sequence that the model was built from: what alignments call the
  /// model itself.
  std::optional<QueryNames> built = {};
};

/// Work that a sink has prepared; see ResultSink::prepare.
class PreparedResult {
 public:
  virtual ~PreparedResult() = default;
  /// Makes one of the parts; several may be made at a time.
  virtual void make(std::size_t part) = 0;
  virtual std::size_t parts() const { return 1; }
  /// Bytes in memory, once all parts are made.
  virtual std::size_t bytes() const = 0;
};

/// What only reports of nhmmer and nhmmscan show.
struct NucleotideFields {
  double F1 = 0, F2 = 0, F3 = 0;                       ///< see nucleotide::Options
  std::int64_t longest_position = 0;                   ///< see nucleotide::Extents
  std::uint64_t models = 1, nodes = 0;                 ///< searched with a sequence
  std::vector<std::vector<float>> column_scores = {};  ///< of each hit
};

/// Finished search of one model.
struct ModelResult {
  std::size_t index = 0;  ///< in the model input, from 0
  ModelInfo model;
  Calibration calibration;
  HitList hits;
  bool alignments = true;  ///< domains have the text of their alignments
  double seconds = 0;      ///< from set-up to the last domain; other models run at the same time
  double cpu_seconds = 0;  ///< spent in its tasks, all threads together
  /// If memory had no room for the reported hits (with SearchOptions::by_target: the candidates):
  /// the source of them; `hits` then has only the totals. Null for sinks that do not take stored
  /// hits.
  std::shared_ptr<HitSource> stored = {};
  /// Prepared by the sink before the turn of this result; may be null.
  std::shared_ptr<PreparedResult> prepared = {};
  /// Of nhmmer and nhmmscan, whose results are neither stored nor prepared.
  std::optional<NucleotideFields> nucleotides = {};
};

/// Some hits of a model, in their order.
struct HitLot {
  HitLot(const ModelResult& of) : HitLot(of, of.hits.hits) {}  // NOLINT: all hits in memory
  HitLot(const ModelResult& of, std::span<const Hit> some) : result(of), hits(some) {}
  const ModelInfo& model() const { return result.model; }
  const HitList& totals() const { return result.hits; }

  const ModelResult& result;  ///< the model and its totals
  std::span<const Hit> hits;
};
/// A copy of a result with the totals only.
ModelResult without_hits(const ModelResult& result);
/// Calls `use` with all hits of a result in order: in one lot if they are in memory, otherwise in
/// lots that fit.
Status for_each_lot(const ModelResult& result, const std::function<Status(const HitLot&)>& use);

/// Receives results in model order, one at a time, from any thread of the search.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// Called when a model is complete, perhaps for several models at once. May return work to be
  /// done ahead of the model's turn, such as its text, in parts that several threads make. The
  /// result stays where it is until all are made. Null: nothing.
  virtual std::shared_ptr<PreparedResult> prepare(const ModelResult&) const { return nullptr; }
  /// Makes a part of what prepare() has returned.
  virtual void make(PreparedResult& prepared, std::size_t part) const { prepared.make(part); }
  virtual Status receive(const ModelResult& result) = 0;
  /// True: an error in the search of its model `index` does not end the search of others. An
  /// empty result takes the model's place.
  virtual bool take_error(std::size_t /*index*/, const Error& /*error*/) { return false; }
  /// Whether `receive` knows ModelResult::stored. Results with stored hits are not prepared.
  virtual bool takes_stored_hits() const { return false; }
};

/// Counters a progress display may read at any time.
struct SearchProgress {
  std::atomic<std::uint64_t> target_bytes_read{0}, target_bytes_total{0};
  std::atomic<std::uint64_t> targets{0}, residues{0};
  std::atomic<bool> targets_complete{false};
  std::atomic<std::uint64_t> models_started{0}, models_done{0};
  /// Results that the sinks of all searches with these counters have been given.
  std::atomic<std::uint64_t> results_delivered{0};
  /// A kernel of a device computes wrong scores, which ends the search with kInternal. The same
  /// search on the CPU would succeed.
  std::atomic<bool> wrong_kernel{false};
  std::atomic<std::uint64_t> cells{0};          ///< positions x residues filtered so far
  std::atomic<std::uint64_t> earlier_cells{0};  ///< those of searches before this one (jackhmmer)
  std::atomic<std::uint64_t> cells_queued{0};  ///< of all models started so far
  /// Cells of targets that passed the filters: found so far; scored so far.
  std::atomic<std::uint64_t> scoring_cells_found{0}, scoring_cells{0};
  /// Thread time spent on `cells` and on `scoring_cells`.
  std::atomic<std::uint64_t> filter_microseconds{0}, scoring_microseconds{0};

  /// Estimates the seconds until all pairs of the models begun so far have been filtered, at the
  /// average rate of the search, which has taken `seconds`. Unread targets count in proportion to
  /// the bytes of the input. 0 before anything has been filtered.
  double filter_seconds_left(double seconds) const;
};

/// Where the time went: core-seconds (thread CPU time) summed over threads. Reading includes
/// decompression.
struct SearchStatistics {
  std::string backend;
  int threads = 0;
  std::uint64_t models = 0, targets = 0, residues = 0;
  std::uint64_t passes = 1, blocks = 0;
  bool streamed = false, spooled = false;
  /// Other searches took part in its run (Session): the core-seconds are not known.
  bool shared = false;
  /// Batches with a matrix beyond a thread's share of the memory, scored one at a time.
  std::uint64_t scored_alone = 0;
  double wall_seconds = 0, read_seconds = 0, setup_seconds = 0, report_seconds = 0;
  std::uint64_t bytes_read = 0;
  FilterTimes filters;
  double scoring_seconds = 0;  ///< Forward and everything after it
  domain::DomainTimes domain;  ///< parts of scoring, core-seconds
  FilterCounters counters;     ///< summed over models
  std::uint64_t hits_reported = 0, domains_reported = 0;
  std::uint64_t verified = 0;  ///< pairs of model and target whose device result was checked
  /// Chains of kernels that such targets were chosen from; what all checks took.
  std::uint64_t verified_chains = 0;
  double verify_seconds = 0;
};

/// Adds the times and counts of another search, but not its targets.
void add(SearchStatistics& sum, const SearchStatistics& other);

/// Next model of the input, nullopt after the last.
using ModelSource = std::function<Result<std::optional<Query>>()>;

/// Tells a search that its source, which had no further model, has one. Thread-safe.
class LateModels {
 public:
  /// Without effect where no search listens, or it is complete.
  void announce() HMMJIT_EXCLUDES(mutex_);
  /// Called by the search. announce() calls the `listener`; null removes it.
  void listen(std::function<void()> listener) HMMJIT_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::function<void()> listener_ HMMJIT_GUARDED_BY(mutex_);
};

/// grant_memory for the memory and threads of `options`. Warns if the threads are fewer.
Result<MemoryGrant> grant_memory(const SearchOptions& options);

/// Searches every model against every target. Blocks until all results are with the sink.
/// Fails with the first error in model order; results of the models before it have been
/// delivered. `device`: takes part in the filters and the domain stage; null: the CPU alone.
/// `progress` and `late` may be null. Several searches may run at once in one process.
Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                TargetSource& targets, gpu::GpuFilters* device, ResultSink& sink,
                                SearchProgress* progress, LateModels* late = nullptr);

}  // namespace hmmjit
