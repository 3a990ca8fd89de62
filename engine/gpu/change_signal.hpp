// Wakes threads that wait for work.
#pragma once

#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <limits>

#include "core/mutex.hpp"
#include "core/trace.hpp"

namespace hmmjit::gpu {

/// Counts changes. A thread reads the count, looks for work and, if there is none, waits for a
/// higher count, so that it misses no change in between. Thread-safe.
class ChangeSignal {
 public:
  std::uint64_t count() const {
    const MutexLock lock(mutex_);
    return count_;
  }
  void raise() {
    {
      const MutexLock lock(mutex_);
      ++count_;
    }
    changed_.notify_all();
  }
  /// `until` (Trace::now): when the caller has something to do even without a change.
  void wait_beyond(std::uint64_t seen, double until = std::numeric_limits<double>::infinity()) {
    MutexLock lock(mutex_);
    if (std::isinf(until)) {
      while (count_ == seen) lock.wait(changed_);
      return;
    }
    while (count_ == seen && lock.wait_until(changed_, Trace::time_point(until))) {
    }
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
