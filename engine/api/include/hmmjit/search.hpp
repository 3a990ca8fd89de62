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
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmmjit/cache.hpp"
#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// A limit by E-value, or by score where one is given.
struct Threshold {
  double e_value = 10.0;             ///< above 0; hits with at most this E-value satisfy it
  std::optional<double> score = {};  ///< bits; replaces the E-value test
};

/// Cutoffs of each model in place of the four thresholds: those stored in the models, or those of
/// SearchOptions::cutoff_table.
enum class ModelCutoffs { kNone, kGathering, kNoise, kTrusted, kTable };
/// Cutoffs by name, accession, or accession without version of a model; NaN: no threshold.
using CutoffTable = std::map<std::string, ScoreCutoff, std::less<>>;
/// A model without them: an error, left out, or judged by the four thresholds.
enum class MissingCutoffs { kError, kSkip, kDefault };

enum class DeviceUse {
  kAuto,  ///< a GPU where there is one and it pays
  kCpu,
  kGpu,  ///< demanded: Error kNoDevice when none can be used
};

/// Defaults are hmmsearch's.
///
/// Concurrent searches share nothing. By default each takes all cores granted to the process and up
/// to half of the memory that was free when it began, so a host that runs N of them sets `threads`
/// to cores / N and `memory` to available bytes / N. One search of many models keeps all cores busy
/// by itself. Several searches may use one GPU; set `vram` for each, because the default is nine
/// tenths of the memory that is free when the search begins.
struct SearchOptions {
  Threshold report{10.0, {}}, report_domain{10.0, {}};      ///< -E, -T, --domE, --domT
  Threshold include{0.01, {}}, include_domain{0.01, {}};    ///< --incE, ...
  ModelCutoffs cutoffs = ModelCutoffs::kNone;               ///< --cut_ga, --cut_nc, --cut_tc
  MissingCutoffs missing_cutoffs = MissingCutoffs::kError;  ///< --cut-missing
  CutoffTable cutoff_table = {};                            ///< of kTable (--cut-file)
  /// Number of targets for E-values and for conditional E-values; unset: counted. Tables by target
  /// (ReportKind::kScanTargetTable) need a search whose Z is the number of models, as hmmscan's is.
  /// Finite.
  std::optional<double> Z = {}, domZ = {};

  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;  ///< P-values of MSV, Viterbi and Forward filters
  bool bias_filter = true;
  bool max_sensitivity = false;  ///< --max: no filters; overrides the above
  bool null2 = true;             ///< biased composition correction of scores
  std::uint32_t seed = 42;       ///< 0: an arbitrary one; results then vary
  /// False saves memory: results have no alignments (ModelResult::has_alignments), main reports and
  /// JSON lines leave them out as --noali does, and alignment reports are refused.
  bool keep_alignments = true;

  std::string first_target = {};  ///< --restrictdb_stkey: begin at it; empty: the first
  std::optional<std::uint64_t> target_count = {};  ///< --restrictdb_n: as many at most

  int threads = 0;  ///< busy threads at most, the caller's included; 0: all cores granted (1024)
  std::uint64_t memory = 0;  ///< bound on bytes this search holds; 0: half of the free memory;
                             ///< 65,536 at least (kUsage)

  DeviceUse device = DeviceUse::kAuto;
  std::vector<int> gpus{0};  ///< ordinals
  std::uint64_t vram = 0;    ///< bytes of each GPU; 0: nine tenths of its free memory
  /// Targets per model whose GPU result is computed again on the CPU; -1: as many as take one
  /// hundredth of the search's core-seconds. If both differ before a `result` callback has been
  /// called, `warning` is called and the search is repeated on the CPU; otherwise it throws.
  int verify = -1;
  /// Kernels of GPU searches; unset: the cache that the environment names.
  std::optional<Cache> cache = {};
};

/// A moment of a running search. Counters only grow.
struct Progress {
  std::uint64_t models_started = 0;                             ///< set up
  std::uint64_t models_done = 0;                                ///< their results delivered
  std::uint64_t targets = 0, residues = 0;                      ///< read so far
  bool targets_complete = false;                                ///< all read
  std::uint64_t target_bytes_read = 0, target_bytes_total = 0;  ///< total 0: not known
  std::uint64_t cells = 0;         ///< model positions x residues filtered
  std::uint64_t cells_queued = 0;  ///< of all models started, for the targets read
};

/// Ends a search from another thread, or from a callback. Copies share; thread-safe.
class HMMJIT_EXPORT Cancellation {
 public:
  Cancellation();
  void cancel() noexcept;
  bool cancelled() const noexcept;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

/// Called by a search, from its own threads or the caller's, with the floating-point mode that
/// the caller of `search` had. An exception of a callback ends the search and leaves `search`
/// unchanged. A callback may start other searches; it must not wait for the search that called it.
struct SearchCallbacks {
  /// Receives each result in model order, one at a time, from any thread. Empty: the results are
  /// collected. Results given to it are not collected.
  std::function<void(const ModelResult&)> result = {};
  /// Called about every `interval` from a separate thread; false cancels the search.
  std::function<bool(const Progress&)> progress = {};
  std::chrono::milliseconds interval{250};
  /// Receives problems that do not stop the search: a lost GPU, an unusable cache folder. One at a
  /// time, from any thread. If empty, only SearchStatistics::device tells of them. A cache of the
  /// host (SearchOptions::cache) calls its own CacheSettings::on_warning instead.
  std::function<void(const Error&)> warning = {};
  std::optional<Cancellation> cancellation = {};
};

/// Counters and times of a search. Stage seconds are core-seconds: processor time summed over
/// threads, without waiting. See docs/statistics.md.
struct SearchStatistics {
  std::string backend;  ///< what filtered: "cpu/AVX2", "gpu/sm_90 H200+cpu/AVX2", ...
  std::string device;   ///< "ready", "failed: why", ... of the GPU, or why none was used
  int threads = 0;      ///< busy at most
  std::uint64_t models = 0, targets = 0, residues = 0;  ///< searched
  std::uint64_t passes = 0;  ///< over the targets: 1 unless they exceed the memory bound
  bool streamed = false;     ///< the targets exceeded their part of the memory bound
  bool spooled = false;      ///< and came from a pipe, so that they were copied to a temporary file
  double wall_seconds = 0;   ///< from the first model read to the last result delivered
  double read_seconds = 0;   ///< parsing targets
  double setup_seconds = 0;  ///< making profiles of models
  double ssv_seconds = 0, msv_seconds = 0, bias_seconds = 0, viterbi_seconds = 0;  ///< CPU filters
  double scoring_seconds = 0;  ///< Forward and everything after it
  double report_seconds = 0;   ///< in the host's `result` callback, or collecting results
  FilterCounts counts;         ///< summed over models
  std::uint64_t hits_reported = 0, domains_reported = 0;
  std::uint64_t verified = 0;  ///< pairs of model and target whose GPU result was checked
  std::uint64_t peak_resident_bytes = 0;  ///< of the process so far, the host's own included

  // All GPUs together; 0 if none was used.
  std::uint64_t device_cells = 0;       ///< model positions x residues
  std::uint64_t device_launches = 0;    ///< of kernels
  double device_busy_seconds = 0;       ///< with at least one kernel running
  double device_active_seconds = 0;     ///< from ready to the last result
  std::uint64_t device_peak_bytes = 0;  ///< of device memory, the largest of the devices
  std::uint64_t device_upload_bytes = 0;
  std::uint64_t kernels = 0;           ///< different ones that were launched
  std::uint64_t kernels_compiled = 0;  ///< made by this search
  std::uint64_t kernels_loaded = 0;    ///< taken from the kernel cache
  double compile_seconds = 0;          ///< of the former, summed over threads

  /// All that was measured: the JSON text that `hmmjit search --stats` writes.
  std::string json;
};

struct SearchResults {
  std::vector<ModelResult> models;  ///< in input order; empty where a callback took them
  SearchStatistics statistics;
  SearchOptions options;  ///< those of the search
};

/// Searches every model against every target; returns when all is done. Any number of searches
/// may run at once from several threads, on the same models and targets as well.
///
/// Throws Error: kInput for unreadable or unsuitable models and targets (results of the models
/// before were delivered); kNoDevice; kResources when memory runs out or a target's matrix
/// exceeds it; kInterrupted after a cancellation, usually within milliseconds, in a large
/// alignment within seconds; kUsage for options that make no sense; kInternal where a GPU's result
/// failed a check (SearchOptions::verify) after a result had been delivered. The calling thread
/// works along and gets its floating-point mode back.
HMMJIT_EXPORT SearchResults search(const Models& models, const Targets& targets,
                                   const SearchOptions& options = {},
                                   const SearchCallbacks& callbacks = {});

/// Joins results of one model against several sets of targets: the result is that of one search of
/// all sets in this order. `options`: those of the searches. Thread-safe. Throws Error kUsage for
/// no result and for searches with cutoffs of models, which results do not hold (parts of a search
/// do, see parts.hpp); kInput for results of different models.
HMMJIT_EXPORT ModelResult merge_results(const std::vector<ModelResult>& results,
                                        const SearchOptions& options = {});

HMMJIT_END_NAMESPACE
