// Searching profiles against sequences, with the results of hmmsearch.
//
//   const hmmjit::SearchResults results =
//       hmmjit::search(hmmjit::Models::load("globins4.hmm"),
//       hmmjit::Targets::from_file("big.fasta"));
//
// Scores, E-values, domains and their order equal those of HMMER's hmmsearch (Eddy 2011, PLoS
// Comput Biol 7:e1002195), for any number of threads, device and memory bound.
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

/// Programs with default options.
enum class Program { kHmmsearch, kJackhmmer, kNhmmer };

/// Options of a search, with the defaults of a program; for members see hmmjit.h. Objects behind
/// pointers must live until the search returns.
///
/// Concurrent searches share nothing: a host that runs N of them sets `threads` to cores / N and
/// `memory` to available bytes / N. One search of many models keeps all cores busy. Several
/// searches may use one GPU; set `vram` for each, because its default is nine tenths of the memory
/// that is free when the search begins.
///
/// If a GPU result checked by `verify` differs from the CPU's, the search calls `warning` and
/// starts again on the CPU; after the first call of `result`, it throws instead.
struct SearchOptions : hmmjit_search_options {
  HMMJIT_EXPORT SearchOptions(Program program = Program::kHmmsearch) noexcept;  // NOLINT
};

/// A moment of a running search. Counters only grow.
using Progress = hmmjit_progress;

/// Ends a search from another thread or a callback. Copies share; thread-safe.
class HMMJIT_EXPORT Cancellation : public SharedHandle<struct CancellationImpl> {
 public:
  using SharedHandle::SharedHandle;
  Cancellation();
  void cancel() noexcept;
  bool cancelled() const noexcept;
  /// For BuildOptions::cancellation; valid while this object lives.
  const hmmjit_cancellation* c_handle() const noexcept;
};

/// Called by a search, on its own threads or the caller's, with the floating-point mode of the
/// caller of `search`. An exception of a callback ends the search, and `search` throws it
/// unchanged. A callback may start other searches, but must not wait for its own search.
struct SearchCallbacks {
  /// Receives each result in model order, one at a time, from any thread. Empty: the search
  /// collects results.
  std::function<void(const ModelResult&)> result = {};
  /// Called about every `interval` (1 ms to a day), from a separate thread; false cancels the
  /// search.
  std::function<bool(const Progress&)> progress = {};
  std::chrono::milliseconds interval{250};
  /// Receives problems that do not stop the search, one at a time, from any thread: a lost GPU, an
  /// unusable cache folder. Empty: only SearchStatistics::device shows them. A cache of the host
  /// (`cache` of the options) calls its CacheSettings::on_warning instead.
  std::function<void(const Error&)> warning = {};
  std::optional<Cancellation> cancellation = {};
};

/// Counters and times of a search; for members see hmmjit.h and docs/statistics.md. Texts are never
/// null and live as long as any copy.
struct SearchStatistics : hmmjit_search_statistics {
  SearchStatistics() : hmmjit_search_statistics{} { backend = device = json = ""; }
  std::shared_ptr<const void> texts;  ///< keeps them
};

struct SearchResults {
  std::vector<ModelResult> models;  ///< in input order; empty if a callback received them
  SearchStatistics statistics;
  /// The search's options that determine results, for reports. Options of the machine and of the
  /// targets have their defaults; pointers are null.
  SearchOptions options;
};

/// Searches every model against every target; returns once all is done. Any number of searches may
/// run concurrently, also on the same models and targets.
///
/// Throws Error: kInput for unreadable or unsuitable models and targets (after the results of
/// earlier models); kNoDevice; kResources if memory runs out or a target's matrix exceeds it;
/// kInterrupted after a cancellation, usually within milliseconds, in a large alignment within
/// seconds, but not while it waits for a pipe; kUsage for invalid options; kInternal if a GPU
/// result fails a check (`verify` of the options) after the first delivered result. The calling
/// thread takes part in the search and keeps its floating-point mode.
HMMJIT_EXPORT SearchResults search(const Models& models, const Targets& targets,
                                   const hmmjit_search_options& options = SearchOptions(),
                                   const SearchCallbacks& callbacks = {});

/// Searches every sequence with every model, as hmmscan does: see hmmjit_scan. Throws Error as
/// search does. Reads a file of models again for every 4 M residues, with a GPU for every 32 M.
///
///   for (const hmmjit::ModelResult& sequence :
///        hmmjit::scan(hmmjit::Models::load("Pfam-A.hmm"),
///                     hmmjit::Targets::from_file("queries.fasta")).models)
///     for (const hmmjit::Hit& family : sequence.hits()) use(family.name);
HMMJIT_EXPORT SearchResults scan(const Models& models, const Targets& sequences,
                                 const hmmjit_search_options& options = SearchOptions(),
                                 const SearchCallbacks& callbacks = {});

/// Joins the results of one model against several sets of targets into the result of one search of
/// all sets, in this order. `options`: of the searches. Thread-safe. Throws Error kUsage without
/// results and for searches with cutoffs of models, which results do not store (part files do, see
/// parts.hpp); kInput for results of different models.
HMMJIT_EXPORT ModelResult merge_results(const std::vector<ModelResult>& results,
                                        const hmmjit_search_options& options = SearchOptions());

HMMJIT_END_NAMESPACE
