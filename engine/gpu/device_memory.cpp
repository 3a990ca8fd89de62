#include "gpu/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hmmjit::gpu {

std::uint64_t DeviceMemory::budget() const {
  const MutexLock lock(mutex_);
  return budget_;
}

std::shared_ptr<DeviceTargets> DeviceMemory::keep(std::unique_ptr<DeviceTargets> targets) {
  std::shared_ptr<DeviceTargets> kept(targets.release(), [this](DeviceTargets* gone) {
    {
      const MutexLock lock(mutex_);
      std::erase(targets_, gone);
    }
    delete gone;
  });
  const MutexLock lock(mutex_);
  targets_.push_back(kept.get());
  note_peak();
  return kept;
}

// Targets grow, because work lists are made on first use.
std::uint64_t DeviceMemory::resident() const {
  std::uint64_t bytes = 0;
  for (const DeviceTargets* targets : targets_) bytes += targets->bytes();
  return bytes;
}

bool DeviceMemory::has_room(const Reservation& load) const {
  const std::uint64_t buffers = std::max(buffers_, load.buffers);
  return resident() + loading_ + buffers + load.bytes <= budget_;
}

bool DeviceMemory::begin_load(const Reservation& load, bool beside_work) {
  const MutexLock lock(mutex_);
  if (beside_work && loading_ > 0) return false;
  const bool unused = loading_ == 0 && targets_.empty();
  if (!has_room(load) && (beside_work || !unused)) return false;
  loading_ += load.bytes;
  return true;
}

void DeviceMemory::end_load(const Reservation& load) {
  const MutexLock lock(mutex_);
  loading_ -= load.bytes;
}

Status DeviceMemory::resize_buffer(std::size_t from, std::size_t to) {
  const MutexLock lock(mutex_);
  buffers_ -= from;
  if (to > from && resident() + loading_ + buffers_ + to > budget_) {
    return fail(
        ErrorCode::kResources,
        fmt::format("buffers of {} bytes for a model exceed the device memory to be used", to));
  }
  buffers_ += to;
  note_peak();
  return {};
}

std::uint64_t DeviceMemory::usable(std::uint64_t free) const {
  return (resident() + buffers_ + free) / 10 * 9 + 1;
}

void DeviceMemory::reduce(std::uint64_t free) {
  const MutexLock lock(mutex_);
  budget_ = std::min(budget_, usable(free));
}

bool DeviceMemory::reduced() const { return budget() < most_; }

bool DeviceMemory::restore(std::uint64_t free) {
  const MutexLock lock(mutex_);
  const std::uint64_t now = std::min(most_, usable(free));
  if (now / 5 * 4 < budget_) return false;
  budget_ = now;
  return true;
}

void DeviceMemory::note_peak() { peak_ = std::max(peak_, resident() + buffers_); }

std::uint64_t DeviceMemory::peak() const {
  const MutexLock lock(mutex_);
  return peak_;
}

}  // namespace hmmjit::gpu
