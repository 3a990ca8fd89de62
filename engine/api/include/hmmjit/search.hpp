// Searching profiles against sequences, with the results of hmmsearch.
//
// Scores, E-values, domains and their order are those of HMMER's hmmsearch (Eddy 2011, PLoS Comput
// Biol 7:e1002195), whatever the number of threads, the device or the memory bound.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  double e_value = 10.0;
  std::optional<double> score;  ///< bits; replaces the E-value test
};

/// Cutoffs stored in the models, in place of the four thresholds; a model without them is an
/// error.
enum class ModelCutoffs { kNone, kGathering, kNoise, kTrusted };

enum class DeviceUse {
  kAuto,  ///< a GPU where there is one and it pays
  kCpu,
  kGpu,  ///< demanded: Error kNoDevice when none can be used
};

/// Defaults are hmmsearch's.
struct SearchOptions {
  Threshold report{10.0, {}}, report_domain{10.0, {}};    ///< -E, -T, --domE, --domT
  Threshold include{0.01, {}}, include_domain{0.01, {}};  ///< --incE, ...
  ModelCutoffs cutoffs = ModelCutoffs::kNone;             ///< --cut_ga, --cut_nc, --cut_tc
  std::optional<double> Z, domZ;  ///< number of targets for E-values; unset: counted

  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;  ///< P-values of MSV, Viterbi and Forward filters
  bool bias_filter = true;
  bool max_sensitivity = false;  ///< --max: no filters; overrides the above
  bool null2 = true;             ///< biased composition correction of scores
  std::uint32_t seed = 42;       ///< 0: an arbitrary one; results then vary
  bool keep_alignments = true;   ///< false saves memory; no alignments in results and reports

  int threads = 0;           ///< busy threads at most, the caller's included; 0: all cores granted
  std::uint64_t memory = 0;  ///< bound on resident bytes; 0: half of what the machine has free

  DeviceUse device = DeviceUse::kAuto;
  std::vector<int> gpus{0};  ///< ordinals
  std::uint64_t vram = 0;    ///< bytes of each GPU; 0: nine tenths of what is free
  int verify = 0;            ///< targets per model whose GPU result is checked on the CPU
  /// Kernels of GPU searches; unset: the cache that the environment names.
  std::optional<Cache> cache;
};

/// A moment of a running search.
struct Progress {
  std::uint64_t models_started = 0, models_done = 0;
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
  const std::shared_ptr<Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  std::shared_ptr<Impl> impl_;
};

/// Called by a search. What a callback throws ends the search and comes out of `search`.
struct SearchCallbacks {
  /// Receives each result in model order, one at a time, from any thread. Empty: the results are
  /// collected. Results given to it are not collected.
  std::function<void(const ModelResult&)> result;
  /// Called about every `interval` from a thread of its own; false cancels the search.
  std::function<bool(const Progress&)> progress;
  std::chrono::milliseconds interval{250};
  std::optional<Cancellation> cancellation;
};

/// Where the time went. Stage seconds are summed over threads.
struct SearchStatistics {
  std::string backend;  ///< "cpu/AVX2", ...
  std::string device;   ///< "ready", "failed", ... of the GPU, or why none was used
  int threads = 0;
  std::uint64_t models = 0, targets = 0, residues = 0;
  std::uint64_t passes = 0;  ///< over the targets: 1 unless they exceed the memory bound
  double wall_seconds = 0, read_seconds = 0, setup_seconds = 0;
  double msv_seconds = 0, bias_seconds = 0, viterbi_seconds = 0, scoring_seconds = 0;
  FilterCounts counts;  ///< summed over models
  std::uint64_t hits_reported = 0, domains_reported = 0;
  std::uint64_t device_cells = 0, device_launches = 0;
};

struct SearchResults {
  std::vector<ModelResult> models;  ///< in input order; empty where a callback took them
  SearchStatistics statistics;
};

/// Searches every model against every target; returns when all is done. Any number of searches
/// may run at once from several threads, on the same models and targets as well.
///
/// Throws Error: kInput for unreadable or unsuitable models and targets (results of the models
/// before were delivered); kNoDevice; kResources when memory runs out or a target's matrix
/// exceeds it; kInterrupted after a cancellation, usually within milliseconds, in a large
/// alignment within seconds; kUsage for options that make no sense.
HMMJIT_EXPORT SearchResults search(const Models& models, const Targets& targets,
                                   const SearchOptions& options = {},
                                   const SearchCallbacks& callbacks = {});

HMMJIT_END_NAMESPACE
