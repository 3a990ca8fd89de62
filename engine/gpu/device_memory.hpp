// A device's memory budget and its use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "gpu/device_targets.hpp"

namespace hmmjit::gpu {

/// Counts the bytes of resident targets, targets being loaded, and the lanes' buffers, which
/// together stay within a budget. Thread-safe; calls nothing while locked.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::uint64_t budget) : most_(budget), budget_(budget) {}

  std::uint64_t budget() const;
  /// Counts the targets for as long as they are held.
  std::shared_ptr<DeviceTargets> keep(std::unique_ptr<DeviceTargets> targets);

  /// Memory for targets that are to be loaded.
  struct Reservation {
    std::uint64_t bytes = 0;
    std::uint64_t buffers = 0;  ///< that all lanes together will need to work on them
  };
  /// Reserves memory for targets until end_load(). False if there is not enough. Targets larger
  /// than the budget are admitted if nothing else uses memory. `beside_work`: only if there is room
  /// and nothing else is being loaded.
  bool begin_load(const Reservation& load, bool beside_work = false);
  void end_load(const Reservation& load);

  /// Call before replacing a buffer of `from` bytes by one of `to`. Counts nothing on kResources.
  Status resize_buffer(std::size_t from, std::size_t to);
  /// Call it when the device has refused memory, with the bytes that it has free: reduces the
  /// budget to nine tenths of these and of what is held.
  void reduce(std::uint64_t free);
  bool reduced() const;
  /// Raises a reduced budget to the same part of what is free by now, but not above the first one.
  /// Does nothing and returns false if that is hardly more: targets that are loaded again cost
  /// time.
  bool restore(std::uint64_t free);
  std::uint64_t peak() const;

 private:
  std::uint64_t resident() const HMMJIT_REQUIRES(mutex_);
  bool has_room(const Reservation& load) const HMMJIT_REQUIRES(mutex_);
  std::uint64_t usable(std::uint64_t free) const HMMJIT_REQUIRES(mutex_);
  void note_peak() HMMJIT_REQUIRES(mutex_);

  const std::uint64_t most_;
  mutable Mutex mutex_;
  std::uint64_t budget_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<const DeviceTargets*> targets_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t loading_ HMMJIT_GUARDED_BY(mutex_) = 0, buffers_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::uint64_t peak_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
