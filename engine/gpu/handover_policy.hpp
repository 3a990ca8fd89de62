// Decides whether the device or the CPU does the domain stage. Both can, so
// neither should wait for the other, nor be left with more than it finishes when the other does.
//
// Plain functions of the state of both sides, without locks or clocks. Each number cites its
// measurement.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hmmjit::gpu {

/// The work left for the threads of the search.
struct HostLoad {
  double seconds_left = 0;  ///< expected, until they have scored all known targets
  std::size_t waiting = 0;  ///< tasks that no thread has begun
  std::size_t threads = 1;
  double cell_seconds = 0;  ///< expected, of all of them together, for a cell of a target
  /// Expected, until all pairs have been filtered; 0 once all targets have been read.
  double filter_seconds_left = 0;
};

/// The work that waits for a device.
struct DeviceLoad {
  double filter_seconds_left = 0;  ///< expected, until the chains not yet begun have ended
  std::size_t domain_chains = 0;   ///< chains whose targets wait for its domain stage
  std::size_t domain_targets = 0;  ///< of all of them
  std::uint64_t domain_cells = 0;  ///< likewise: model positions times residues
};

/// Whether threads are without work, or will be before a device could bring them any.
bool host_is_idle(const HostLoad& host);

/// Cells of the targets that such threads are given, of those that wait for a device's domain
/// stage: enough to have something to do until they are looked at again, and no more than they
/// finish before the device could have.
std::uint64_t cells_for_idle_host(const HostLoad& host);

/// Whether threads score so many cells sooner than a launch of the domain stage would, at the end
/// of a search.
bool host_is_sooner(const HostLoad& host, const DeviceLoad& device, std::uint64_t cells);

/// Whether a launch of the domain stage waits until there are more targets for it: each of its
/// kernels takes as long as its longest item, however few there are, and meanwhile its warps keep
/// SSV, which needs a whole multiprocessor at a time, from those they are on. `ready`: targets that
/// one launch could take. `waited`: seconds that those have waited which came first.
bool waits_for_more_targets(const DeviceLoad& device, std::size_t ready, double waited);
/// Seconds for which a launch waits at most.
inline constexpr double kMostDomainWait = 0.2;

/// How long a launch of the domain stage may take, in seconds, whose targets are among those that
/// wait. Longer, and threads wait for its end; shorter, and they are given more than they can
/// finish.
double domain_launch_seconds(const HostLoad& host, const DeviceLoad& device);
/// Upper bound of a launch, in seconds. A target that alone takes longer falls back to the CPU at
/// once.
inline constexpr double kLongestDomainLaunch = 2;

}  // namespace hmmjit::gpu
