// Which models and target blocks of a search are in flight, and what may be begun next.
//
// Models are taken while memory and threads want more. The targets are read once and kept while
// they fit; then each model goes over all of them. Where they do not fit, the models that are in
// flight become a batch, which is filled first; the targets then go by the whole batch, and once
// more for every further batch.
//
// Like the work board, this is a record: it starts nothing and calls nobody while it is locked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "search/model_job.hpp"
#include "search/models_in_flight.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class SearchWindow {
 public:
  using Limits = WindowLimits;
  using Demand = SearchDemand;

  explicit SearchWindow(const Limits& limits) : limits_(limits), models_(limits) {}

  // ---- models ----------------------------------------------------------------------------------

  /// Returns how many models are to be set up now.
  std::size_t start_models(const Demand& demand) HMMJIT_EXCLUDES(mutex_);
  /// The input has no further model. `setting_up`: found out by a set-up, which ends with that.
  void end_models(bool setting_up) HMMJIT_EXCLUDES(mutex_);
  struct Joined {
    std::vector<BlockPtr> blocks;  ///< that are there
    bool complete = false;         ///< no further ones; otherwise the job is held until they end
  };
  /// A model has been set up.
  Joined add_model(const JobPtr& job) HMMJIT_EXCLUDES(mutex_);
  /// A model has all its hits: its tables are freed.
  void release_model_bytes(std::size_t bytes) HMMJIT_EXCLUDES(mutex_);
  void end_model() HMMJIT_EXCLUDES(mutex_);
  /// No model is left, and none will come.
  bool complete() const HMMJIT_EXCLUDES(mutex_);

  // ---- targets ---------------------------------------------------------------------------------

  /// Whether reading may go on; it counts as under way then.
  bool resume_reading() HMMJIT_EXCLUDES(mutex_);
  struct Added {
    std::vector<JobPtr> jobs;  ///< that want this block; each is held once
    bool pause = false;        ///< reading is not under way any more
    bool fill = false;         ///< the targets do not fit: a batch of models is to be filled
  };
  Added add_block(const BlockPtr& block) HMMJIT_EXCLUDES(mutex_);
  void release_block_bytes(std::size_t bytes) { block_bytes_ -= bytes; }
  /// True once when the batch is full: the targets may go by it.
  bool batch_filled(const Demand& demand) HMMJIT_EXCLUDES(mutex_);
  struct Released {
    std::vector<BlockPtr> blocks;
    std::vector<JobPtr> jobs;
  };
  /// The blocks that have been kept so far, which are let go, and the models of the batch.
  Released release_blocks() HMMJIT_EXCLUDES(mutex_);
  /// The input has ended: the jobs that waited for more, whose hold is the caller's to end.
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
  std::vector<BlockPtr> blocks_ HMMJIT_GUARDED_BY(mutex_);   // for models to come; none in batches
  std::vector<JobPtr> open_jobs_ HMMJIT_GUARDED_BY(mutex_);  // that wait for more blocks
  bool reading_ HMMJIT_GUARDED_BY(mutex_) = false, input_ended_ HMMJIT_GUARDED_BY(mutex_) = false;
  Batch batch_ HMMJIT_GUARDED_BY(mutex_) = Batch::kNone;
};

}  // namespace hmmjit::search_run
