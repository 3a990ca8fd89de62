// The interface between the owner of a search and its devices.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "gpu/cascade.hpp"
#include "gpu/handover_policy.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

/// What a device found out about a pair it has claimed.
struct Delivery {
  Claim claim;
  FilteredBlock found;
};
/// A part of what is going to be delivered of a block, whose pair stays claimed.
struct EarlyDelivery {
  TargetsPtr targets;
  FilteredBlock found;
};

/// What the owner provides. Called from lane threads, without any lock of GpuFilters held.
class Client {
 public:
  /// The device has done its part of the pairs.
  virtual void deliver(ModelId model, std::vector<Delivery> pairs) = 0;
  /// A part of what is found out about pairs, before deliver() of them, which leaves it out.
  virtual void deliver_early(ModelId model, std::vector<EarlyDelivery> pairs) = 0;
  /// Which targets of a chain that begins with these kernels are to be brought back with their
  /// scores. `blocks`: claimed for it.
  virtual SampleRequest sample(std::uint64_t model, const std::vector<UsedKernel>& kernels,
                               std::size_t blocks) {
    (void)model, (void)kernels, (void)blocks;
    return {};
  }
  /// Nothing more will be claimed; all pairs are left to the host next. `reason` is for people;
  /// `demanded`: the user asked for a GPU and none could be started.
  virtual void stopped(const Error& reason, bool demanded) = 0;
  /// Memory of the host has run out where nobody else can go on: the search has to end. Pairs that
  /// are left to the host afterwards are not to be done.
  virtual void out_of_memory() noexcept = 0;
  /// What the owner's threads still have to do; see handover_policy.hpp. By default more than any
  /// device.
  virtual HostLoad load() const { return {.waiting = std::numeric_limits<std::size_t>::max()}; }

 protected:
  ~Client() = default;
};

}  // namespace hmmjit::gpu
