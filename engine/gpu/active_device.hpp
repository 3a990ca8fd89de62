// A device that takes part in searches, and the state shared by its threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "gpu/cascade.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/device_targets.hpp"
#include "gpu/domain_queue.hpp"
#include "gpu/domain_stage.hpp"

namespace hmmjit::gpu {

/// Times at which a device was working, in seconds since its origin. Thread-safe.
class BusyTimes {
 public:
  void add(double begin, double end) {
    const MutexLock lock(mutex_);
    times_.emplace_back(begin, end);
    last_result_ = Trace::now();
    if (std::ssize(times_) < kMostTimes) return;
    // The older half; hardly any launch that is still running began before it.
    std::ranges::sort(times_);
    const auto half = times_.begin() + kMostTimes / 2;
    sum_ = join(times_.begin(), half, sum_);
    times_.erase(times_.begin(), half);
  }
  /// Seconds during which at least one launch was running.
  double seconds() const {
    const MutexLock lock(mutex_);
    auto times = times_;
    std::ranges::sort(times);
    return join(times.begin(), times.end(), sum_).seconds;
  }
  /// Time of the last result (Trace::now); 0 before the first.
  double last_result() const {
    const MutexLock lock(mutex_);
    return last_result_;
  }

 private:
  using Times = std::vector<std::pair<double, double>>;
  // The sum of the times up to `reached`.
  struct Sum {
    double seconds = 0, reached = -1;
  };
  static constexpr std::ptrdiff_t kMostTimes = 4096;
  static Sum join(Times::const_iterator at, Times::const_iterator last, Sum sum) {
    for (; at != last; ++at) {
      sum.seconds += std::max(0.0, at->second - std::max(at->first, sum.reached));
      sum.reached = std::max(sum.reached, at->second);
    }
    return sum;
  }

  mutable Mutex mutex_;
  Times times_ HMMJIT_GUARDED_BY(mutex_);  // the latest; earlier ones are in sum_
  Sum sum_ HMMJIT_GUARDED_BY(mutex_);
  double last_result_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

/// The rate at which chains end, for all lanes of a device together. Time between searches does not
/// count. Thread-safe.
class ChainPace {
 public:
  /// A chain that began at `begun` has ended at `end`, both on Trace::now's clock.
  void add(double begun, double end) {
    const MutexLock lock(mutex_);
    seconds_ += std::max(0.0, end - std::max(begun, last_));
    last_ = std::max(last_, end);
    ++count_;
  }
  /// Average seconds from the end of one chain to the end of the next; 1 before the first.
  double seconds_each() const {
    const MutexLock lock(mutex_);
    return count_ == 0 ? 1 : seconds_ / static_cast<double>(count_);
  }

 private:
  mutable Mutex mutex_;
  double seconds_ HMMJIT_GUARDED_BY(mutex_) = 0, last_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::uint64_t count_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

/// A device with its memory, the queue of its domain stage, and what its lanes measure.
struct ActiveDevice {
  explicit ActiveDevice(std::uint64_t budget) : memory(budget) {}

  std::shared_ptr<driver::Driver> driver;  ///< must outlive the members below
  int position = 0;                        ///< index among the devices
  driver::DevicePtr device;
  driver::Event origin;  ///< recorded at `origin_time` (Trace::now)
  double origin_time = 0;
  int lanes = 0, domain_lanes = 0;
  std::uint64_t domain_workspace = 0;  ///< in bytes, per domain lane

  DeviceMemory memory;
  DomainQueue domain_queue;
  BusyTimes busy;
  BusyTimes filters_busy;  ///< while chains of filters were running
  std::array<BusyTimes, kTimedStages.size()> filter_busy;
  std::array<BusyTimes, kDomainStages.size()> domain_busy;
  ChainPace pace;
  std::atomic<bool> lost{false};    ///< the device has been given up
  std::atomic<double> progress{0};  ///< see StreamWait
  Mutex upload_mutex;
  std::unique_ptr<Uploader> uploader HMMJIT_GUARDED_BY(upload_mutex);
};

}  // namespace hmmjit::gpu
