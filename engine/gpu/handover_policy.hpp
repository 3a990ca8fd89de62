// Divides the domain stage between the device and the CPU, so that neither waits for the other.
//
// Pure functions of the load of both sides. Each constant cites its measurement.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hmmjit::gpu {

/// Work left for a search's threads. Times are estimates in seconds.
struct HostLoad {
  double seconds_left = 0;  ///< until the threads have scored all known targets
  std::size_t waiting = 0;  ///< tasks that no thread has begun yet
  std::size_t threads = 1;
  double cell_seconds = 0;         ///< per cell of a target, for all threads together
  double filter_seconds_left = 0;  ///< until all pairs are filtered; 0 once all targets are read
};

/// Work that waits for a device.
struct DeviceLoad {
  double filter_seconds_left = 0;  ///< estimate, until the chains not yet begun have ended
  std::size_t domain_chains = 0;   ///< chains whose targets wait for the domain stage
  std::size_t domain_targets = 0;  ///< targets of all these chains
  std::uint64_t domain_cells = 0;  ///< of these targets: model positions times residues
};

/// True if threads have no work, or will have none before a device could bring them any.
bool host_is_idle(const HostLoad& host);

/// Number of cells, out of those that wait for a device's domain stage, to give to idle threads:
/// enough until the threads ask again, and no more than they finish before the device could.
std::uint64_t cells_for_idle_host(const HostLoad& host);

/// True if, at the end of a search, threads score `cells` cells sooner than a launch would.
bool host_is_sooner(const HostLoad& host, const DeviceLoad& device, std::uint64_t cells);

/// True if a launch of the domain stage should wait for more targets. However few there are, each
/// kernel takes as long as its longest item, and meanwhile its warps keep SSV, which needs whole
/// multiprocessors, off those that they occupy. `ready`: targets that one launch could take.
/// `waited`: seconds that the first of them has waited.
bool waits_for_more_targets(const DeviceLoad& device, std::size_t ready, double waited);
/// Maximum time that a launch waits, in seconds.
inline constexpr double kMostDomainWait = 0.2;

/// Seconds that a launch of the domain stage may take. With longer launches threads would wait for
/// it; with shorter ones they would get more work than they can finish.
double domain_launch_seconds(const HostLoad& host, const DeviceLoad& device);
/// Upper bound of domain_launch_seconds(). A target that takes longer on its own falls back to the
/// CPU at once.
inline constexpr double kLongestDomainLaunch = 2;

}  // namespace hmmjit::gpu
