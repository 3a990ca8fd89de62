// What waits for the domain stage of a device.
#pragma once

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
class Segment;

/// A chain of filters that has ended, and what becomes of its pairs. The segment is in use until it
/// has been delivered.
struct DomainWork {
  ClientUse use;  // let go of last
  std::shared_ptr<ActiveModel> model;
  std::shared_ptr<Segment> segment;
  std::vector<Claim> claims;  ///< one for each block of the segment
  CascadeResult found;
  DomainRequest request;
  std::vector<UsedKernel> kernels;  ///< it was computed with
  double queued = 0;                ///< Trace::now
};
using DomainWorkPtr = std::unique_ptr<DomainWork>;

/// Chains in the order in which they ended. Thread-safe.
class DomainQueue {
 public:
  void put(DomainWorkPtr work);
  /// The chains that one launch takes, which have the same kernels: those of which there are most
  /// targets. Empty where there is nothing, or where `all` is not set and they rather wait for
  /// more.
  std::vector<DomainWorkPtr> take_launch(const DeviceLoad& device, bool all);
  /// The last one, whose turn is furthest off; null where there is none.
  DomainWorkPtr take_last();
  std::size_t chains() const;
  std::size_t targets() const;

 private:
  struct Launch {
    const DomainWork* first = nullptr;
    std::size_t chains = 0, targets = 0;
  };
  Launch largest_launch() const HMMJIT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<DomainWorkPtr> work_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t targets_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
