// Targets that wait for a device's domain stage.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/cascade.hpp"
#include "gpu/client.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/handover_policy.hpp"

namespace hmmjit::gpu {

class ActiveModel;

/// A finished chain of filters, with its claims until all its pairs have been delivered.
struct FilteredChain {
  FilteredChain() = default;
  FilteredChain(const FilteredChain&) = delete;
  FilteredChain& operator=(const FilteredChain&) = delete;
  /// Pairs that have not been delivered fall back to the CPU. If a part of a pair has been
  /// delivered, which happens when memory runs out, the pair cannot be repeated: the search ends.
  ~FilteredChain();

  ClientUse use;  // first, so that it is released last
  std::shared_ptr<ActiveModel> model;
  std::vector<Claim> claims;          ///< one for each block of the segment
  std::vector<FilteredBlock> blocks;  ///< of the segment, without the targets that passed
  std::vector<UsedKernel> kernels;    ///< used for the chain
  std::atomic<int> parts{1};          ///< number of DomainWork with undelivered targets
  std::atomic<bool> begun{false};     ///< some of it has been delivered
};

/// All or some of a chain's targets that passed its filters.
struct DomainWork {
  std::shared_ptr<FilteredChain> chain;
  std::vector<PassedTarget> passed;  ///< in the order of the blocks
  DomainRequest request;
  std::vector<UsedKernel> kernels;  ///< used in the domain stage
  double queued = 0;                ///< Trace::now
};
using DomainWorkPtr = std::unique_ptr<DomainWork>;

/// Model positions times residues, summed over all its targets.
std::uint64_t cells_of(const DomainWork& work);
/// Splits off the targets for which `taken` is set; the others stay.
DomainWorkPtr split_off(DomainWork& work, const std::vector<bool>& taken);

/// Chains, or parts of them, in the order in which they ended. Thread-safe.
class DomainQueue {
 public:
  /// Takes the work; while the queue is closed, does nothing and returns false.
  bool put(DomainWorkPtr& work);
  /// Drops all work and accepts no more until open(), so that nothing here holds a client.
  void close();
  void open();
  /// Takes the work of one launch: among groups that share kernels, the one with the most targets,
  /// up to DomainStage::kMostLaunchTargets. Empty if nothing waits. Without `all`, also empty while
  /// kernels are being compiled, or if it pays to wait for more targets; `until` is then the time
  /// at which to stop waiting (Trace::now).
  std::vector<DomainWorkPtr> take_launch(const DeviceLoad& device, bool all, double& until);
  /// Takes the longest targets of the last chain, which would wait longest, with about `cells`
  /// cells. Null if nothing waits.
  DomainWorkPtr take_longest(std::uint64_t cells);
  std::size_t chains() const;
  /// All that waits here; the part for the filters is 0.
  DeviceLoad load() const;

 private:
  struct Launch {
    const DomainWork* first = nullptr;
    std::size_t chains = 0, targets = 0;
  };
  // Empty if nothing waits. `all`: includes work whose kernels are being compiled.
  Launch largest_launch(bool all) const HMMJIT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  bool open_ HMMJIT_GUARDED_BY(mutex_) = true;
  std::deque<DomainWorkPtr> work_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t targets_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::uint64_t cells_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
