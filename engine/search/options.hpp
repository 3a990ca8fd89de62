// Options of a search: hmmsearch's thresholds and filters, and limits of our own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/calibration.hpp"
#include "core/cancellation.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "domain/domain.hpp"
#include "model/hmm.hpp"

namespace hmmjit {

class TargetCounters;

/// Cutoffs that replace the thresholds: those of each model, or those of Thresholds::table.
enum class ModelCutoffs { kNone, kGathering, kNoise, kTrusted, kTable };
/// Bit score cutoffs by the name or accession of a model (read_cutoff_table, a host's mapping).
using CutoffTable = std::map<std::string, Cutoff, std::less<>>;
/// A model without the cutoffs asked for is an error, or is judged by the other thresholds.
enum class MissingCutoffs { kError, kDefault };

/// One reporting or inclusion rule: by E-value, or by score where one was given.
struct Threshold {
  double e_value = 10.0;
  std::optional<double> score;  ///< replaces the E-value test
  bool operator==(const Threshold&) const = default;
};

/// Reporting and inclusion of targets and domains; defaults are hmmsearch's.
struct Thresholds {
  Threshold target{10.0, {}}, domain{10.0, {}};
  Threshold include_target{0.01, {}}, include_domain{0.01, {}};
  ModelCutoffs cutoffs = ModelCutoffs::kNone;  ///< replaces all four
  MissingCutoffs missing = MissingCutoffs::kError;
  std::shared_ptr<const CutoffTable> table;  ///< with kTable, never null
  std::optional<double> Z, domZ;             ///< search space sizes set by the user
  double min_coverage = 0;                   ///< share of the model a reported domain must cover
  bool operator==(const Thresholds&) const = default;
};

/// P-value thresholds of the acceleration filters; a target passes when not P > F.
struct FilterOptions {
  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;
  bool bias = true;
  TargetCounters* per_target = nullptr;  ///< counts target by target as well
  /// --max: every target reaches the domain stage.
  static FilterOptions max_sensitivity() { return {1.0, 1.0, 1.0, false}; }
  bool operator==(const FilterOptions&) const = default;
};

/// Sets the seed of sampled traces, as hmmsearch's --seed does. 0: an arbitrary seed for one
/// generator that is never reset, so that results vary.
void set_seed(domain::DomainOptions& domain, std::uint32_t seed);

/// Settings that decide the results and the use of threads and memory.
struct SearchSettings {
  /// For a report by target, where Z is the number of models: a hit is kept if it would be reported
  /// with the models up to its own. `Z`: as set by the user. Needs FilterOptions::per_target.
  struct ByTarget {
    std::optional<double> Z;
    /// By index in the search, that in the file of models; null: the same.
    const std::vector<std::size_t>* indices = nullptr;
    bool operator==(const ByTarget&) const = default;
  };
  std::optional<ByTarget> by_target = {};
  Thresholds thresholds;
  FilterOptions filters;
  domain::DomainOptions domain;
  build::CalibrationOptions calibration;  ///< of models that come without score statistics
  /// False drops the alignment text of every domain once its target is scored.
  bool keep_alignments = true;
  /// The number of targets for E-values, if the target source is a part of a larger search.
  std::optional<std::uint64_t> whole_targets = {};
  /// Targets per model whose device result is computed again on the CPU; none: as many as cost a
  /// hundredth of the search's core-seconds. A difference ends the search (SearchProgress).
  std::optional<int> verify = {};
  /// Nice increment for all worker threads, the caller's included; not restored. Useful in a
  /// process of its own with a device, whose threads have little to do but should not wait for a
  /// core.
  int lower_priority = 0;
  int threads = 1;           ///< busy threads at most, the caller's included
  std::uint64_t memory = 0;  ///< bound on resident bytes; 0: half of what the machine has free
  /// Residues per target block; 0: a million, and up to four where the input has many.
  std::size_t block_residues = 0;
  /// Cells (positions x residues) per filter task: small enough to balance the load, large enough
  /// that scheduling costs nothing.
  std::uint64_t task_cells = 50'000'000;
  bool operator==(const SearchSettings&) const = default;
};

struct SearchOptions : SearchSettings {
  /// No other search of a session takes part in its run, so that its times are its own.
  bool own_run = false;
  Trace* trace = nullptr;  ///< timeline of the tasks; may be null
  /// Ends the search with kInterrupted, before its next task. May be null.
  const Cancellation* cancellation = nullptr;
  /// Called before every task, from any thread, when SearchProgress may have changed. May be empty.
  std::function<void()> on_progress = {};
  /// Called for problems that do not stop the search, such as threads that could not be started or
  /// a device that is lost (see Session); from any thread. May be empty.
  std::function<void(const Error&)> on_warning = {};
};

}  // namespace hmmjit
