// What waits for the domain stage of a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/cascade.hpp"
#include "gpu/client_calls.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/handover_policy.hpp"

namespace hmmjit::gpu {

class ActiveModel;

/// A chain of filters that has ended, and what becomes of its pairs.
struct FilteredChain {
  FilteredChain() = default;
  FilteredChain(const FilteredChain&) = delete;
  FilteredChain& operator=(const FilteredChain&) = delete;
  /// Pairs that have not been delivered are the host's. Where a part of them has been, nobody can
  /// do them any more: memory has run out, and the search ends.
  ~FilteredChain();

  ClientUse use;  // let go of last
  std::shared_ptr<ActiveModel> model;
  std::vector<Claim> claims;          ///< one for each block of the segment
  std::vector<FilteredBlock> blocks;  ///< of the segment, but for the targets that passed
  std::vector<UsedKernel> kernels;    ///< it was computed with
  std::atomic<int> parts{1};          ///< DomainWork whose targets have not been delivered
  std::atomic<bool> begun{false};     ///< something of it has been delivered
};

/// Targets of one chain that passed its filters: all of them, or a part.
struct DomainWork {
  std::shared_ptr<FilteredChain> chain;
  std::vector<PassedTarget> passed;  ///< in the order of the blocks
  DomainRequest request;
  std::vector<UsedKernel> kernels;  ///< those of the domain stage
  double queued = 0;                ///< Trace::now
};
using DomainWorkPtr = std::unique_ptr<DomainWork>;

/// Model positions times residues, of all of its targets.
std::uint64_t cells_of(const DomainWork& work);
/// A part of its own of those targets for which `taken` is set; the others stay.
DomainWorkPtr split_off(DomainWork& work, const std::vector<bool>& taken);

/// Chains, and parts of them, in the order in which they ended. Thread-safe.
class DomainQueue {
 public:
  void put(DomainWorkPtr work);
  /// What one launch takes, which has the same kernels: that of which there are most targets, and
  /// DomainStage::kMostLaunchTargets of them at most. Empty where there is nothing, where kernels
  /// are still being made, or where what there is rather waits for more; with `all` only where
  /// there is nothing.
  std::vector<DomainWorkPtr> take_launch(const DeviceLoad& device, bool all);
  /// Of the last one, whose turn is furthest off, the longest targets: about so many cells. Null
  /// where there is none.
  DomainWorkPtr take_longest(std::uint64_t cells);
  std::size_t chains() const;
  std::size_t targets() const;

 private:
  struct Launch {
    const DomainWork* first = nullptr;
    std::size_t chains = 0, targets = 0;
  };
  // Of nothing where there is none. `all`: also of what waits for kernels.
  Launch largest_launch(bool all) const HMMJIT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<DomainWorkPtr> work_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t targets_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
