// Wakes threads that wait for work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>

#include "core/mutex.hpp"

namespace hmmjit::gpu {

/// Counts changes. A thread reads the count, looks for work, and if there is none waits for a
/// higher count, so that no change in between is missed. Thread-safe.
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
  void wait_beyond(std::uint64_t seen) {
    MutexLock lock(mutex_);
    while (count_ == seen) lock.wait(changed_);
  }
  /// For conditions without a signal.
  void wait_beyond(std::uint64_t seen, std::chrono::milliseconds at_most) {
    MutexLock lock(mutex_);
    if (count_ == seen) lock.wait_for(changed_, at_most);
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
