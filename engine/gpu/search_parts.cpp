#include "gpu/search_parts.hpp"

#include <fmt/format.h>

#include "gpu/active_device.hpp"
#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {

std::vector<double> SearchParts::note_stages(ActiveDevice& device, int row,
                                             std::span<const char* const> stages,
                                             const std::string& what, float begin,
                                             std::span<const float> end,
                                             std::span<BusyTimes> busy) const {
  device.busy.add(begin * 1e-3, end.back() * 1e-3);
  std::vector<double> seconds;
  const std::string group =
      settings.trace != nullptr ? fmt::format("gpu {}", device.device->ordinal()) : std::string();
  float from = begin;
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

void SearchParts::out_of_memory() noexcept {
  availability.out_of_memory();
  handed_over.raise();
}

void SearchParts::deliver_and_count(DomainWork& work) {
  if (const auto pairs = deliver(work))
    counters.update([&](Statistics& s) { s.blocks_done += *pairs; });
}

std::string SearchParts::reason() const {
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
