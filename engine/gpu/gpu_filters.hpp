// The filters (SSV, MSV, bias, Viterbi, Forward) of many models against many targets on one or more
// GPUs, and the beginning of the domain stage for targets that pass.
//
// The client (a search) adds models and target blocks; its board (work/work_board.hpp) holds the
// pairs that have still to be done. Blocks are packed into segments, segments become resident on a
// device, and lanes (one thread and one stream each) take models through the filters for them. A
// lane claims a model's open pairs before it launches. All other pairs remain open to the client's
// threads, whatever the device is doing. If a claim fails, its pair falls back to them.
//
// Results are hmmsearch's decisions: see cascade.hpp. Targets that pass go through domain_stage.hpp
// in batches before they are delivered, but not while kernels are being loaded, which the driver
// only does while the device is idle. A model's chains begin when the kernels that decide most
// targets are ready (kernel_store.hpp); other kernels are used once they are ready. Until then the
// client's threads do that work, as they always do for targets that the device leaves open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "core/trace.hpp"
#include "gpu/cascade.hpp"
#include "gpu/client.hpp"
#include "gpu/device_targets.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

/// What a GpuFilters is asked to do, for all its searches.
struct Settings {
  std::vector<int> devices{0};  ///< ordinals
  bool demanded = false;        ///< if false, the client silently continues without a GPU
  std::uint64_t vram = 0;  ///< bytes per device for targets and buffers; 0: 90 % of the free memory
  /// Residues of each device's first segment, and growth factor of the following ones, up to
  /// `largest_segment`. The first is small, so that devices begin soon, and so is any for which a
  /// device waits. Later ones are large, because at each stage a chain waits for its longest
  /// targets, however few it has. On an H200 the filters of 349 models against 540 M residues
  /// take 5.7 s in segments of 64 M residues and 3.7 s in segments of 1 G.
  std::uint64_t segment_residues = std::uint64_t{64} << 20;
  std::uint64_t segment_growth = 4, largest_segment = std::uint64_t{1} << 30;
  /// Per device: chains in flight, and concurrent launches of the domain stage. Both mostly wait
  /// for the last targets of each kernel. On an H200 the filters of 349 models against 530 M
  /// residues take 3.4 s with 4 chains in flight, 2.9 s with 8, and no less with 12.
  int lanes = 8, domain_lanes = 6;
  /// The CPU leaves pairs to the devices even before their targets are resident. For tests in which
  /// the devices do all the work.
  bool wait_for_device = false;
  double launch_timeout = 60;  ///< seconds until a launch of ordinary targets counts as lost
  /// Device seconds of SSV with a coarse kernel after which a compile for a closer length pays off.
  double finer_kernel_seconds = 0.5;
  std::function<void(const std::string&)> on_warning = {};
  Trace* trace = nullptr;
  /// For tests; defaults: this machine's driver, cache and compiler.
  std::function<std::shared_ptr<driver::Driver>()> open_driver = {};
  std::function<Result<std::unique_ptr<KernelSource>>()> open_kernels = {};
};

/// A stage on all devices. Launches overlap, both within a stage and between stages.
struct StageTimes {
  double seconds = 0;       ///< from the previous stage's end to its own end, summed over chains
  double busy_seconds = 0;  ///< while at least one of its launches was running
  std::uint64_t cells = 0;  ///< as StageWork::cells; 0: not counted
  double expected_seconds = 0;
};

/// The same for the domain stage, and, by HostReason, the cells of items that fell back to the CPU.
struct DomainStageTimes : StageTimes {
  std::array<std::uint64_t, kHostReasons.size()> host_cells{};
};

/// Seconds that the lanes of all devices have spent, by activity.
struct LaneTimes {
  double working = 0;
  /// Filters: waiting for kernels or for targets that are being loaded; domain stage: waiting for
  /// more targets for a launch.
  double waiting = 0;
  double idle = 0;  ///< nothing to do
};

/// Counts and times of all devices together.
struct Statistics {
  std::string state;   ///< "ready", "starting", "unused", "failed"
  std::string reason;  ///< of a failure
  std::vector<std::string> devices;
  double ready_seconds = 0;  ///< from construction until the first device could work
  double driver_seconds = 0, context_seconds = 0, pack_seconds = 0;
  double busy_seconds = 0;    ///< at least one kernel running; summed over devices
  double active_seconds = 0;  ///< to the last result, from ready or the earlier ones; summed
  std::uint64_t upload_bytes = 0, segments = 0, evictions = 0;
  std::uint64_t peak_device_bytes = 0;  ///< maximum over devices
  std::uint64_t launches = 0, chains = 0, cells = 0, targets = 0;
  /// Targets that passed MSV or that SSV left undecided; targets for which Viterbi and Forward ran.
  std::uint64_t survivors = 0, undecided = 0, viterbi = 0, viterbi_flagged = 0, forward = 0;
  /// Targets delivered: those that the host goes on with after MSV, and after Viterbi or Forward.
  std::uint64_t open = 0, passed = 0;
  /// Domain stage of the targets that passed: targets with regions found, regions with sampled
  /// traces, and envelopes scored.
  std::uint64_t parsed = 0, sampled = 0, envelopes = 0;
  std::array<StageTimes, kTimedStages.size()> stages{};
  std::array<DomainStageTimes, kDomainStages.size()> domain_stages{};
  double filters_busy_seconds = 0;  ///< at least one chain of filters running; summed over devices
  LaneTimes filter_lanes, domain_lanes;
  std::uint64_t blocks_done = 0, blocks_given_back = 0, models_declined = 0;
  compile::ProviderStatistics kernels;
  std::uint64_t distinct_kernels = 0;  ///< loaded
  double taken = 0;                    ///< when these were taken (Trace::now)
};

/// Counts a launch of the domain stage, except for busy_seconds.
void add(Statistics& sum, const DomainResult& launch);

/// Statistics counted by several threads. Thread-safe.
class Counters {
 public:
  /// Calls `change` with the statistics, under the lock.
  template <typename Change>
  void update(Change&& change) {
    const MutexLock lock(mutex_);
    change(statistics_);
  }
  Statistics get() const {
    const MutexLock lock(mutex_);
    return statistics_;
  }

 private:
  mutable Mutex mutex_;
  Statistics statistics_ HMMJIT_GUARDED_BY(mutex_);
};

/// Thread-safe. Construction starts the driver on its own thread and returns at once.
class GpuFilters {
 public:
  explicit GpuFilters(Settings settings);
  ~GpuFilters();
  GpuFilters(const GpuFilters&) = delete;
  GpuFilters& operator=(const GpuFilters&) = delete;

  /// One client at a time; it owns the models, the blocks and the board. `host_bytes`: limit on
  /// copies of targets in device layout that wait for their upload; 0: one segment per device plus
  /// one.
  void attach(Client& client, WorkBoard& board, const FilterLimits& limits,
              std::uint64_t host_bytes = 0);
  /// Returns once no call of the client is running or will follow and no claim is left; forgets
  /// models and blocks.
  void detach();
  /// Releases the targets of earlier searches that no search can have again.
  void release_unknown_targets();
  /// Uses the devices no more: statistics() has the state "failed" with this reason.
  void give_up(const Error& error);

  /// Adds a model; ids ascend in the order in which results are wanted.
  void add_model(std::uint64_t id, std::shared_ptr<const SearchModel> model);
  void remove_model(std::uint64_t id);
  /// Adds a block of the board.
  void add_block(BlockRef block);
  /// No further blocks follow for now: those that have been added become a segment, however small.
  void end_blocks();
  /// From now on, drops finished segments including their host memory.
  void set_streaming();
  /// Call this when pairs have been opened on the board.
  void look_at_board();

  /// Call this when the CPU has taken a pair from the board.
  void pair_taken();
  /// Delivers, as they are, the longest targets that wait for the domain stage, as many as idle
  /// threads under this load finish soon. False if none wait.
  bool backfill(const HostLoad& load);

  /// True if a lane will claim this pair if it stays open: its kernels are ready, and the block is
  /// or was on a device. The CPU need not take it then: if no lane does so after all, the board
  /// notifies the client.
  bool serves(std::uint64_t model, std::uint64_t block) const;

  /// "gpu/sm_90 H200"; empty before a device is ready.
  std::string name() const;
  /// Counts and times are those since `earlier` ones were taken, by default all. The start of the
  /// devices, their peak of memory and their kernels are always those of the whole lifetime.
  Statistics statistics(const Statistics& earlier = {}) const;
  /// Kernels that searches have requested and that are still being compiled, described so that
  /// another process can make them. None before a device's traits are known.
  struct UnfinishedKernels {
    int device = 0;            ///< its ordinal
    std::vector<int> lengths;  ///< model lengths, ascending
  };
  UnfinishedKernels unfinished_kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit::gpu
