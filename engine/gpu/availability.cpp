#include "gpu/availability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu/active_device.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/client.hpp"
#include "gpu/gpu_filters.hpp"
#include "gpu/target_store.hpp"

namespace hmmjit::gpu {

Availability::Availability(const Settings& settings, ClientCalls& clients, TargetStore& targets,
                           Counters& counters, ChangeSignal& changed)
    : settings_(settings),
      clients_(clients),
      targets_(targets),
      counters_(counters),
      changed_(changed) {}

Availability::~Availability() = default;

Availability::Phase Availability::phase() const {
  const MutexLock lock(mutex_);
  return phase_;
}

std::vector<ActiveDevice*> Availability::devices() const {
  const MutexLock lock(mutex_);
  std::vector<ActiveDevice*> out;
  for (const auto& device : devices_) out.push_back(device.get());
  return out;
}

ActiveDevice* Availability::device(std::size_t n) const {
  const MutexLock lock(mutex_);
  return n < devices_.size() ? devices_[n].get() : nullptr;
}

void Availability::set_devices(std::vector<std::unique_ptr<ActiveDevice>> devices) {
  const MutexLock lock(mutex_);
  devices_ = std::move(devices);
}

void Availability::ready() {
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kFailed) return;
    phase_ = Phase::kReady;
  }
  targets_.use_devices(devices());
  changed_.raise();
}

void Availability::fail_all(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kFailed) return;
    phase_ = Phase::kFailed;
    failure_ = error;
  }
  counters_.update([&](Statistics& s) { s.reason = error.to_string(); });
  changed_.raise();
  report_failure();
}

void Availability::out_of_memory() noexcept {
  const Error failure{ErrorCode::kResources, "out of memory", {}, {}};
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kFailed) failure_ = failure;
    phase_ = Phase::kFailed;
    reported_ = true;
    for (const auto& device : devices_) device->lost = true;
  }
  if (const ClientUse use = clients_.use()) use->client.stopped(failure, true);
  changed_.raise();
}

void Availability::report_pending_failure() {
  {
    const MutexLock lock(mutex_);
    reported_ = false;
    if (phase_ != Phase::kFailed) return;
  }
  report_failure();
}

void Availability::report_failure() {
  const ClientUse use = clients_.use();
  if (!use) return;
  targets_.clear();
  Error failure;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(reported_, true)) return;
    failure = failure_;
  }
  use->client.stopped(failure, settings_.demanded && counters_.get().ready_seconds == 0);
  use->board.refuse_all();
}

void Availability::lose(ActiveDevice& device, const Error& error) {
  const bool first = !device.lost.exchange(true);
  const bool all =
      std::ranges::all_of(devices(), [](const ActiveDevice* d) { return d->lost.load(); });
  if (first && settings_.on_warning)
    settings_.on_warning(fmt::format("device {} is given up: {}; its work goes on {}",
                                     device.device->ordinal(), error.to_string(),
                                     all ? "on the CPU" : "on the CPU and other devices"));
  if (all) {
    fail_all(error);
  } else {
    leave_if_lost(device);
  }
  changed_.raise();
}

void Availability::leave_if_lost(const ActiveDevice& device) {
  if (!device.lost || phase() == Phase::kFailed) return;
  const ClientUse use = clients_.use();
  if (!use) return;
  for (const SegmentPtr& segment : targets_.leave(device)) use->board.refuse_shard(segment->shard);
}

}  // namespace hmmjit::gpu
