// Searching profiles against sequences, with the results of hmmsearch.
//
//   const hmmjit::SearchResults results =
//       hmmjit::search(hmmjit::Models::load("globins4.hmm"),
//       hmmjit::Targets::from_file("big.fasta"));
//
// Scores, E-values, domains and their order are those of HMMER's hmmsearch (Eddy 2011, PLoS Comput
// Biol 7:e1002195), whatever the number of threads, the device or the memory bound.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmmjit/cache.hpp"
#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/models.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Programs whose defaults options may have.
enum class Program { kHmmsearch, kJackhmmer, kNhmmer };

/// Options of a search, described in hmmjit.h, with the defaults of a program. What they point to
/// must live until the search returns.
///
/// Concurrent searches share nothing: a host that runs N of them sets `threads` to cores / N and
/// `memory` to available bytes / N. One search of many models keeps all cores busy by itself.
/// Several searches may use one GPU; set `vram` for each, because the default is nine tenths of the
/// memory that is free when the search begins.
///
/// If a GPU's result that `verify` chose differs from the CPU's before a `result` callback has been
/// called, `warning` is called and the search is repeated on the CPU; otherwise it throws.
struct SearchOptions : hmmjit_search_options {
  HMMJIT_EXPORT SearchOptions(Program program = Program::kHmmsearch) noexcept;  // NOLINT
};

/// A moment of a running search. Counters only grow.
using Progress = hmmjit_progress;

/// Ends a search from another thread, or from a callback. Copies share; thread-safe.
class HMMJIT_EXPORT Cancellation : public SharedHandle<struct CancellationImpl> {
 public:
  using SharedHandle::SharedHandle;
  Cancellation();
  void cancel() noexcept;
  bool cancelled() const noexcept;
};

/// Called by a search, from its own threads or the caller's, with the floating-point mode that
/// the caller of `search` had. An exception of a callback ends the search and leaves `search`
/// unchanged. A callback may start other searches; it must not wait for the search that called it.
struct SearchCallbacks {
  /// Receives each result in model order, one at a time, from any thread. Empty: the results are
  /// collected. Results given to it are not collected.
  std::function<void(const ModelResult&)> result = {};
  /// About every `interval` (1 ms to a day), from a separate thread; false cancels the search.
  std::function<bool(const Progress&)> progress = {};
  std::chrono::milliseconds interval{250};
  /// Receives problems that do not stop the search: a lost GPU, an unusable cache folder. One at a
  /// time, from any thread. If empty, only SearchStatistics::device tells of them. A cache of the
  /// host (`cache` of the options) calls its own CacheSettings::on_warning instead.
  std::function<void(const Error&)> warning = {};
  std::optional<Cancellation> cancellation = {};
};

/// Counters and times of a search, described in hmmjit.h and docs/statistics.md. Texts are never
/// null and live as long as any copy.
struct SearchStatistics : hmmjit_search_statistics {
  SearchStatistics() : hmmjit_search_statistics{} { backend = device = json = ""; }
  std::shared_ptr<const void> texts;  ///< keeps them
};

struct SearchResults {
  std::vector<ModelResult> models;  ///< in input order; empty where a callback took them
  SearchStatistics statistics;
  /// Those of the search that results depend on, as reports need them; those of the machine and of
  /// the targets have their defaults, and pointers are null.
  SearchOptions options;
};

/// Searches every model against every target; returns when all is done. Any number of searches
/// may run at once from several threads, on the same models and targets as well.
///
/// Throws Error: kInput for unreadable or unsuitable models and targets (results of the models
/// before were delivered); kNoDevice; kResources when memory runs out or a target's matrix
/// exceeds it; kInterrupted after a cancellation, usually within milliseconds, in a large
/// alignment within seconds, and not while it waits for a pipe to deliver; kUsage for options that
/// make no sense; kInternal where a GPU's result failed a check (`verify` of the options) after a
/// result had been delivered. The calling thread works along and gets its floating-point mode back.
HMMJIT_EXPORT SearchResults search(const Models& models, const Targets& targets,
                                   const hmmjit_search_options& options = SearchOptions(),
                                   const SearchCallbacks& callbacks = {});

/// Searches every sequence with every model, as hmmscan does: see hmmjit_scan. Throws Error as
/// search does. Models that are files are read again for every 4 M residues, with a GPU for every
/// 32 M.
///
///   for (const hmmjit::ModelResult& sequence :
///        hmmjit::scan(hmmjit::Models::load("Pfam-A.hmm"),
///                     hmmjit::Targets::from_file("queries.fasta")).models)
///     for (const hmmjit::Hit& family : sequence.hits()) use(family.name);
HMMJIT_EXPORT SearchResults scan(const Models& models, const Targets& sequences,
                                 const hmmjit_search_options& options = SearchOptions(),
                                 const SearchCallbacks& callbacks = {});

/// Joins results of one model against several sets of targets: the result is that of one search of
/// all sets in this order. `options`: those of the searches. Thread-safe. Throws Error kUsage for
/// no result and for searches with cutoffs of models, which results do not hold (parts of a search
/// do, see parts.hpp); kInput for results of different models.
HMMJIT_EXPORT ModelResult merge_results(const std::vector<ModelResult>& results,
                                        const hmmjit_search_options& options = SearchOptions());

HMMJIT_END_NAMESPACE
