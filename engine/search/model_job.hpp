// The values that the steps of a running search pass on: target blocks, models, and the state of a
// thread between its tasks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "core/per_thread.hpp"
#include "model/score_statistics.hpp"
#include "search/search.hpp"
#include "work/work_board.hpp"

namespace hmmjit::search_run {

/// Is notified when a block is released.
class BlockOwner {
 public:
  virtual void block_released(BlockId block, std::size_t bytes) noexcept = 0;

 protected:
  ~BlockOwner() = default;
};

/// A target block in flight, shared as TargetsPtr. Its owner is notified when the last reference
/// goes.
struct Block {
  Block(BlockOwner& released_to, TargetBlock&& content)
      : owner(released_to), targets(std::move(content)), bytes(targets.bytes()) {}
  ~Block() { owner.block_released(id, bytes); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  BlockOwner& owner;
  TargetBlock targets;
  std::size_t bytes;
  /// Unique in this process: a device may remember blocks that have been released.
  const BlockId id = next_id();

 private:
  static BlockId next_id() {
    static std::atomic<BlockId> next{1};
    return next++;
  }
};
using BlockPtr = std::shared_ptr<Block>;
inline TargetsPtr targets_of(const BlockPtr& block) { return {block, &block->targets}; }

/// A target that passed the filters, waiting to be scored.
struct WaitingTarget {
  TargetsPtr targets;
  std::uint32_t index;
  float filter_nats;
  std::uint64_t cells;
  std::uint64_t cells_left;                    // estimate of the work left
  std::shared_ptr<const ParsedTarget> parsed;  // null: nothing is known yet
};

/// Cells still to be scored of a target of L residues that passed the filters. Envelopes and traces
/// take twice as long per cell as the Forward filter and the parser, which suffice for most
/// targets. `parsed`: results of a device; may be null.
inline std::uint64_t cells_left(std::uint64_t L, std::uint64_t M, const ParsedTarget* parsed) {
  return parsed == nullptr ? L * M : L * M / 16 + 2 * parsed->residues_left() * M;
}

/// If fewer filter tasks than this wait, a further model is set up.
constexpr std::uint64_t low_water(int threads) {
  return 2 * static_cast<std::uint64_t>(threads) + 1;
}
/// Limit of models in flight without a device.
constexpr std::uint64_t most_models(int threads) { return low_water(threads) + 1; }

/// One model while it is searched. `pending` counts its unfinished tasks, `filters_pending` those
/// that may still find survivors. Each counts one more until the last target has been read.
struct ModelJob {
  std::size_t index = 0;
  double begun = 0;
  std::shared_ptr<const SearchModel> model;
  std::optional<QueryNames> sequence;  // the model was built from
  std::optional<HostFilters> filters;
  Mutex forward_mutex;
  std::optional<domain::ForwardTables> forward_tables;  // made when first needed
  ModelThresholds thresholds;
  std::size_t bytes = 0;
  std::atomic<std::int64_t> pending{1}, filters_pending{1};

  Mutex mutex;
  std::set<gpu::UsedKernel> kernels HMMJIT_GUARDED_BY(mutex);  // of its chains
  std::vector<WaitingTarget> waiting HMMJIT_GUARDED_BY(mutex);
  std::uint64_t blocks_offered HMMJIT_GUARDED_BY(mutex) = 0;  // to devices
  double cpu_seconds HMMJIT_GUARDED_BY(mutex) = 0;
  std::vector<Hit> hits HMMJIT_GUARDED_BY(mutex);
  std::size_t hit_bytes HMMJIT_GUARDED_BY(mutex) = 0;  // of these
  FilterCounters counters HMMJIT_GUARDED_BY(mutex);

  Mutex storing;
  // Hits that did not fit in memory.
  std::shared_ptr<StoredHits> stored HMMJIT_GUARDED_BY(storing);

  const domain::ForwardTables& forward() {
    const MutexLock lock(forward_mutex);
    if (!forward_tables) forward_tables.emplace(*model);
    return *forward_tables;
  }
  /// Counts one more task that may find survivors; the job is finished only after it.
  void hold() {
    ++pending;
    ++filters_pending;
  }
  /// Whether a target with these scores passes the Forward filter.
  bool passes_forward(float nats, float filter_nats, double F3) const {
    const Calibration& calibration = model->hmm.calibration;
    const float bits = nats_to_bits(nats - filter_nats);
    return !(exponential_survival(bits, calibration.forward_tau, calibration.forward_lambda) > F3);
  }
};
using JobPtr = std::shared_ptr<ModelJob>;

/// The state of one thread, kept from task to task.
struct ThreadState {
  domain::Workspace workspace;
  cpu::FilterScratch filter_scratch;
  FilterOutput filtered;
  FilterTimes times;
  double scoring_seconds = 0, setup_seconds = 0, decode_seconds = 0;
  double report_seconds = 0;
  domain::DomainTimes alone_times;  // of workspaces already destroyed
  std::vector<TargetView> views;
  std::vector<float> forward_nats;
  std::vector<const ParsedTarget*> parsed;
  std::vector<std::optional<domain::TargetScore>> scores;
};
using ThreadStates = PerThread<ThreadState>;

/// Called by a step of the search when other steps may continue.
class SearchControl {
 public:
  /// There may be room for further models.
  virtual void start_models() = 0;
  /// The set of models has changed: more may be started, or targets read.
  virtual void models_changed() = 0;
  /// The same, after a model has ended: the next pass over the targets may begin.
  virtual void model_ended() = 0;
  /// A model has all its hits: devices forget it.
  virtual void leave_devices(const ModelJob& job) = 0;

 protected:
  ~SearchControl() = default;
};

}  // namespace hmmjit::search_run
