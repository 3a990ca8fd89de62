// The models and target blocks of a search that are in flight, and what may start next.
//
// Models are set up while memory allows and threads need work. Targets are read once and kept while
// they fit; then every model is searched against all of them. If they do not fit, the models in
// flight become a batch, which is filled first. The targets are then read once for each batch.
//
// Like the work board, this is a passive record: it starts nothing and calls nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "search/model_job.hpp"

namespace hmmjit::search_run {

struct WindowLimits {
  std::uint64_t model_bytes, target_bytes;
  int threads;
  bool device;  ///< devices take part: many more models are in flight
};

/// The state of the search that decides how many models are started.
struct SearchDemand {
  bool stopped;
  bool results_full;              ///< too many results wait to be delivered
  std::uint64_t waiting_filters;  ///< tasks
};

/// Whether the models in flight form a batch, for which the targets are read once.
enum class Batch : std::uint8_t { kNone, kFilling, kFull };

/// How many models of a search are set up and in flight. A record without a lock.
class ModelsInFlight {
 public:
  explicit ModelsInFlight(const WindowLimits& limits) : limits_(limits) {}

  bool may_start(const SearchDemand& demand, Batch batch) const;
  /// Returns how many models may be set up now; from here on they count as being set up.
  std::size_t start(const SearchDemand& demand, Batch batch);
  /// The input has no further model. `setting_up`: a set-up has found this out and ends.
  void end_input(bool setting_up);
  /// A model has been set up.
  void add(std::size_t bytes);
  /// A model has all its hits: its tables are freed.
  void release(std::size_t bytes) { active_bytes_ -= bytes; }
  /// A model has ended.
  void end() { --active_; }

  bool setting_up() const { return preparing_ > 0; }
  bool any() const { return active_ > 0 || preparing_ > 0; }
  /// Whether the input may have further models.
  bool more() const { return !models_ended_; }

 private:
  // Assumed bytes of a model before any has been set up: those of about 250 nodes.
  static constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

  const WindowLimits limits_;
  bool models_ended_ = false;
  std::size_t preparing_ = 0, active_ = 0, active_bytes_ = 0;
  std::size_t model_estimate_ = kFirstModelEstimate;  // of one model
};

/// Thread-safe.
class SearchWindow {
 public:
  using Limits = WindowLimits;
  using Demand = SearchDemand;

  explicit SearchWindow(const Limits& limits) : limits_(limits), models_(limits) {}

  // ---- models ----------------------------------------------------------------------------------

  /// Returns how many models are to be set up now.
  std::size_t start_models(const Demand& demand) HMMJIT_EXCLUDES(mutex_);
  /// The input has no further model. `setting_up`: a set-up has found this out and ends.
  void end_models(bool setting_up) HMMJIT_EXCLUDES(mutex_);
  struct Joined {
    std::vector<BlockPtr> blocks;  ///< read so far
    bool complete = false;         ///< these are all; otherwise the job is held until the last
  };
  /// A model has been set up.
  Joined add_model(const JobPtr& job) HMMJIT_EXCLUDES(mutex_);
  /// A model has all its hits: its tables are freed.
  void release_model_bytes(std::size_t bytes) HMMJIT_EXCLUDES(mutex_);
  void end_model() HMMJIT_EXCLUDES(mutex_);
  /// No model is left, and none will come.
  bool complete() const HMMJIT_EXCLUDES(mutex_);

  // ---- targets ---------------------------------------------------------------------------------

  /// Whether reading may continue; if so, it counts as under way.
  bool resume_reading() HMMJIT_EXCLUDES(mutex_);
  struct Added {
    std::vector<JobPtr> jobs;  ///< to search this block, each held once
    bool pause = false;        ///< reading is no longer under way
    bool fill = false;         ///< the targets do not fit: fill a batch of models
  };
  Added add_block(const BlockPtr& block) HMMJIT_EXCLUDES(mutex_);
  void release_block_bytes(std::size_t bytes) { block_bytes_ -= bytes; }
  /// True once, when the batch is full and the targets may be read for it.
  bool batch_filled(const Demand& demand) HMMJIT_EXCLUDES(mutex_);
  struct Released {
    std::vector<BlockPtr> blocks;
    std::vector<JobPtr> jobs;
  };
  /// Releases the blocks kept so far, and returns them with the models of the batch.
  Released release_blocks() HMMJIT_EXCLUDES(mutex_);
  /// The input has ended. Returns the jobs that waited for more; the caller must end their holds.
  std::vector<JobPtr> end_targets() HMMJIT_EXCLUDES(mutex_);
  /// Whether the targets must be read again if there are more models, for another batch. If true,
  /// reading counts as under way until `begin_pass`.
  bool next_pass(bool stopped) HMMJIT_EXCLUDES(mutex_);
  void begin_pass() HMMJIT_EXCLUDES(mutex_);

 private:
  const Limits limits_;
  std::atomic<std::uint64_t> block_bytes_{0};
  mutable Mutex mutex_;
  ModelsInFlight models_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<BlockPtr> blocks_ HMMJIT_GUARDED_BY(mutex_);   // for later models; empty in batches
  std::vector<JobPtr> open_jobs_ HMMJIT_GUARDED_BY(mutex_);  // that wait for more blocks
  bool reading_ HMMJIT_GUARDED_BY(mutex_) = false, input_ended_ HMMJIT_GUARDED_BY(mutex_) = false;
  Batch batch_ HMMJIT_GUARDED_BY(mutex_) = Batch::kNone;
};

}  // namespace hmmjit::search_run
