// The values that the steps of a running search pass on: target blocks, models, and the state of a
// thread between its tasks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "core/per_thread.hpp"
#include "model/score_statistics.hpp"
#include "search/host_filters.hpp"
#include "work/work_board.hpp"

namespace hmmjit {
class StoredHits;
}

namespace hmmjit::search_run {

class Agenda;

/// A target block in flight, shared as TargetsPtr. The agenda counts its bytes until the last
/// reference goes, which must happen while the agenda exists and without its lock.
struct Block {
  Block(Agenda& counted_in, TargetBlock&& content)
      : agenda(counted_in), targets(std::move(content)), bytes(targets.bytes()) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Agenda& agenda;
  TargetBlock targets;
  std::size_t bytes;
  /// Unique in this process: a device may remember blocks that have been released.
  const BlockId id = next_id++;

 private:
  static inline std::atomic<BlockId> next_id{1};
};
using BlockPtr = std::shared_ptr<Block>;
inline TargetsPtr targets_of(const BlockPtr& block) { return {block, &block->targets}; }

/// A target that passed the filters, waiting to be scored.
struct WaitingTarget {
  TargetsPtr targets;
  std::uint32_t index;
  float filter_nats;  // null or bias score that the filters subtract
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

/// One model while it is searched.
struct ModelJob {
  std::size_t index = 0;
  Recipient recipient;
  double begun = 0;
  std::shared_ptr<const PreparedModel> prepared;  // null once the model is finished
  std::string name;                               // of the model
  std::optional<QueryNames> sequence;  // the model was built from
  std::optional<HostFilters> filters;
  Mutex forward_mutex;
  std::optional<domain::ForwardTables> forward_tables;  // made when first needed
  ModelThresholds thresholds;
  std::size_t bytes = 0;
  std::uint64_t nodes = 0;

  Mutex mutex;
  std::set<gpu::UsedKernel> kernels HMMJIT_GUARDED_BY(mutex);  // of its chains
  std::uint64_t blocks_offered HMMJIT_GUARDED_BY(mutex) = 0;   // to devices
  double cpu_seconds HMMJIT_GUARDED_BY(mutex) = 0;
  std::vector<Hit> hits HMMJIT_GUARDED_BY(mutex);
  std::size_t hit_bytes HMMJIT_GUARDED_BY(mutex) = 0;  // of these
  FilterCounters counters HMMJIT_GUARDED_BY(mutex);

  Mutex storing;
  // Hits that did not fit in memory.
  std::shared_ptr<StoredHits> stored HMMJIT_GUARDED_BY(storing);

  const Hmm& hmm() const { return prepared->hmm(); }
  const domain::ForwardTables& forward() {
    const MutexLock lock(forward_mutex);
    if (!forward_tables) forward_tables.emplace(*prepared->model());
    return *forward_tables;
  }
  /// Whether a target with these scores passes the Forward filter.
  bool passes_forward(float nats, float filter_nats, double F3) const {
    const Calibration& calibration = hmm().calibration;
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
  double scoring_seconds = 0, setup_seconds = 0, read_ahead_seconds = 0;
  double report_seconds = 0;
  domain::DomainTimes alone_times;  // of workspaces already destroyed
  std::vector<TargetView> views;
  std::vector<float> forward_nats;
  std::vector<const ParsedTarget*> parsed;
  std::vector<std::optional<domain::TargetScore>> scores;
};
using ThreadStates = PerThread<ThreadState>;

}  // namespace hmmjit::search_run
