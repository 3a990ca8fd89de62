#include "gpu/engine_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hmmjit::gpu {

// ---- devices -----------------------------------------------------------------------------------

Phase EngineState::phase() const {
  const MutexLock lock(mutex_);
  return phase_;
}

std::vector<ActiveDevice*> EngineState::devices() const {
  const MutexLock lock(mutex_);
  std::vector<ActiveDevice*> out;
  for (const auto& device : devices_) out.push_back(device.get());
  return out;
}

ActiveDevice* EngineState::device(std::size_t n) const {
  const MutexLock lock(mutex_);
  return n < devices_.size() ? devices_[n].get() : nullptr;
}

void EngineState::open_queues(bool open) {
  {
    const MutexLock lock(mutex_);
    queues_are_open_ = open;
  }
  for (std::size_t n = 0; ActiveDevice* const one = device(n); ++n)
    open ? one->domain_queue.open() : one->domain_queue.close();
}

void EngineState::set_devices(std::vector<std::unique_ptr<ActiveDevice>> devices) {
  const MutexLock lock(mutex_);
  for (const auto& device : devices) {
    if (!queues_are_open_) device->domain_queue.close();
  }
  devices_ = std::move(devices);
}

void EngineState::ready() {
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kFailed) return;
    phase_ = Phase::kReady;
  }
  targets.use_devices(devices());
  changed.raise();
}

void EngineState::fail_all(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kFailed) return;
    phase_ = Phase::kFailed;
    failure_ = error;
  }
  counters.update([&](Statistics& s) { s.reason = error.to_string(); });
  changed.raise();
  report_failure();
}

void EngineState::begin_client() {
  told_ = false;
  if (phase() == Phase::kFailed) report_failure();
}

void EngineState::report_failure() {
  const ClientUse use = clients.use();
  if (!use) return;
  Error failure;
  {
    const MutexLock lock(mutex_);
    failure = failure_;
  }
  targets.clear();
  if (told_.exchange(true)) return;
  use->client.stopped(failure, settings.demanded && counters.get().ready_seconds == 0);
  use->board.refuse_all();
}

void EngineState::out_of_memory() noexcept {
  const Error failure{ErrorCode::kResources, "out of memory", {}, {}};
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kFailed) failure_ = failure;
    phase_ = Phase::kFailed;
    for (const auto& device : devices_) device->lost = true;
  }
  told_ = true;
  if (const ClientUse use = clients.use()) use->client.stopped(failure, true);
  changed.raise();
  handed_over.raise();
}

void EngineState::lose(ActiveDevice& device, const Error& error) {
  const bool first = !device.lost.exchange(true);
  const bool all =
      std::ranges::all_of(devices(), [](const ActiveDevice* d) { return d->lost.load(); });
  if (first)
    warn(fmt::format("device {} is given up: {}; its work goes on {}", device.device->ordinal(),
                     error.to_string(), all ? "on the CPU" : "on the CPU and other devices"));
  if (all) {
    fail_all(error);
  } else {
    leave_if_lost(device);
  }
  changed.raise();
  handed_over.raise();
}

void EngineState::leave_if_lost(const ActiveDevice& device) {
  if (!device.lost || phase() == Phase::kFailed) return;
  const ClientUse use = clients.use();
  if (!use) return;
  for (const SegmentPtr& segment : targets.leave(device)) use->board.refuse_segment(segment->id);
}

// ---- launches ----------------------------------------------------------------------------------

std::vector<double> EngineState::note_stages(ActiveDevice& device, int row,
                                             std::span<const char* const> stages,
                                             const std::string& what, double begin,
                                             std::span<const double> end,
                                             std::span<BusyTimes> busy) const {
  device.busy.add(begin * 1e-3, end.back() * 1e-3);
  std::vector<double> seconds;
  const std::string group =
      settings.trace != nullptr ? fmt::format("gpu {}", device.device->ordinal()) : std::string();
  double from = begin;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (settings.trace != nullptr)
      settings.trace->add(group, row, fmt::format("{} {}", stages[i], what),
                          device.origin_time + from * 1e-3, device.origin_time + end[i] * 1e-3);
    seconds.push_back((end[i] - from) * 1e-3);
    if (end[i] > from) busy[i].add(from * 1e-3, end[i] * 1e-3);
    from = end[i];
  }
  return seconds;
}

void EngineState::deliver_and_count(DomainWork& work) {
  if (const auto pairs = deliver(work))
    counters.update([&](Statistics& s) { s.blocks_done += *pairs; });
}

std::string EngineState::reason() const {
  const std::string reason = counters.get().reason;
  return reason.empty() ? kernels.reason() : reason;
}

Cascade::Resize resize_on(ActiveDevice& device, TargetStore& targets) {
  return [&device, &targets](std::size_t from, std::size_t to) {
    Status done = device.memory.resize_buffer(from, to);
    while (!done && targets.make_room(device)) done = device.memory.resize_buffer(0, to);
    return done;
  };
}

}  // namespace hmmjit::gpu
