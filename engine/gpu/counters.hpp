// Counters of the threads of GpuFilters.
#pragma once

#include "core/mutex.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::gpu {

/// Thread-safe.
class Counters {
 public:
  /// Calls `change` with the counters, under their lock.
  template <typename Change>
  void update(Change&& change) {
    const MutexLock lock(mutex_);
    change(statistics_);
  }
  Statistics get() const {
    const MutexLock lock(mutex_);
    return statistics_;
  }

 private:
  mutable Mutex mutex_;
  Statistics statistics_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::gpu
