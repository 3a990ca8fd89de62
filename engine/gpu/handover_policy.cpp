#include "gpu/handover_policy.hpp"

#include <algorithm>
#include <limits>

namespace hmmjit::gpu {
namespace {

// Tasks that threads begin after the device has finished delay the search, and a task that was just
// submitted may still bring much work.
constexpr double kAheadSeconds = 0.025;

// Cells given to one idle thread: about 20 ms of work.
constexpr std::uint64_t kIdleThreadCells = 4'000'000;

// A launch does not wait for more chains or targets than these.
constexpr std::size_t kManyChains = 32, kManyTargets = 8192;

// A launch of this many targets keeps its kernels busy for longer than its longest target takes,
// and few launches leave the driver's queues to the filters. 368 models x 22 M residues on an H200
// with 16 cores: 0.84 s, but 0.93 s with 2,000 targets; x 199 M: 2.88 s and 2.91 s.
constexpr std::size_t kFullLaunch = 6000;
constexpr double kFiltersAlmostDone = 0.05;

// A launch may take the longest of three times: the threads' time for all waiting targets; this
// multiple of the threads' remaining work, which grows with the results of launches; and this
// fraction of the filters' remaining time. Multiples of 2 to 3.5 make a search of one second 2 to 4
// % faster than 1 and 5 do (H200, 16 cores).
constexpr double kTimesOfThreads = 3, kPartOfFilters = 0.25;
constexpr double kShortestLaunch = 0.03;

// If the threads alone would end the search within kLittleWork, a launch's parser may take half of
// that time, because envelopes follow. If they would end it within kLeastWork, they do so, because
// a launch takes as long as its longest item: 57 ms for 6,306 residues and 250 positions. One model
// of 250 positions x 31 M resident residues on an H100 with 16 cores: 46 -> 20 ms
// (benchmarks/serve_latency.py --query-options '&device=gpu').
constexpr double kLittleWork = 0.1, kPartOfLittle = 0.5, kLeastWork = 0.02;

double filter_seconds(const HostLoad& host, const DeviceLoad& device) {
  return std::max(device.filter_seconds_left, host.filter_seconds_left);
}

// Seconds until the threads alone would end the search; infinite if its filters are far from done.
double seconds_to_end(const HostLoad& host, const DeviceLoad& device, std::uint64_t cells) {
  if (host.cell_seconds == 0 || filter_seconds(host, device) > kFiltersAlmostDone)
    return std::numeric_limits<double>::infinity();
  return host.seconds_left + static_cast<double>(cells) * host.cell_seconds;
}

}  // namespace

bool host_is_idle(const HostLoad& host) {
  return host.waiting < (host.threads + 3) / 4 && host.seconds_left < kAheadSeconds;
}

std::uint64_t cells_for_idle_host(const HostLoad& host) { return host.threads * kIdleThreadCells; }

bool host_is_sooner(const HostLoad& host, const DeviceLoad& device, std::uint64_t cells) {
  return seconds_to_end(host, device, cells) < kLeastWork;
}

bool waits_for_more_targets(const DeviceLoad& device, std::size_t ready, double waited) {
  return ready < kFullLaunch && waited < kMostDomainWait &&
         device.filter_seconds_left > kFiltersAlmostDone && device.domain_chains < kManyChains &&
         device.domain_targets < kManyTargets;
}

double domain_launch_seconds(const HostLoad& host, const DeviceLoad& device) {
  if (const double end = seconds_to_end(host, device, device.domain_cells); end < kLittleWork)
    return kPartOfLittle * std::max(kLeastWork, end);
  return std::clamp(
      std::max({kPartOfFilters * filter_seconds(host, device), kTimesOfThreads * host.seconds_left,
                static_cast<double>(device.domain_cells) * host.cell_seconds}),
      kShortestLaunch, kLongestDomainLaunch);
}

}  // namespace hmmjit::gpu
