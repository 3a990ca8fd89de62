// What the threads of GpuFilters work with, each part with a duty and a lock of its own.
#pragma once

#include <atomic>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/active_models.hpp"
#include "gpu/availability.hpp"
#include "gpu/block_groups.hpp"
#include "gpu/chain_kernels.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/client_calls.hpp"
#include "gpu/counters.hpp"
#include "gpu/delivery.hpp"
#include "gpu/resident_segments.hpp"
#include "gpu/segments.hpp"

namespace hmmjit::gpu {

// Bytes that a lane's thread allocates at a time.
inline constexpr std::size_t kLaneHeap = std::size_t{2} << 20;

struct SearchParts {
  explicit SearchParts(Settings s)
      : settings(std::move(s)),
        kernels({.finer_kernel_seconds = settings.finer_kernel_seconds,
                 .trace = settings.trace,
                 .changed = [this] { changed.raise(); },
                 .out_of_memory = [this] { out_of_memory(); }}) {}

  const Settings settings;
  ChangeSignal changed;      // for the filters: pairs, segments, kernels
  ChangeSignal handed_over;  // for the domain stage: chains
  ClientCalls clients;
  Counters counters;
  ActiveModels models;
  BlockGroups groups{settings};
  SegmentBook segment_book{counters, changed};
  Segments segments{settings.devices.size(), segment_book};
  ResidentSegments resident{segment_book};
  Availability availability{settings, clients, groups, segments, counters, changed};
  ChainKernels kernels;
  std::atomic<bool> stop{false};
  std::atomic<bool> warned_memory{false}, warned_kernel{false};

  void warn(const std::string& text) const {
    if (settings.on_warning) settings.on_warning(text);
  }
  void span(const char* group, int row, std::string_view name, double begin, double end) const {
    if (settings.trace != nullptr) settings.trace->add(group, row, name, begin, end);
  }
  // What one launch after the other took of a device, for the timeline (`row`, and the name of each
  // stage before `what`) and in `busy`, of each stage. Milliseconds since the device's origin.
  // Returns the seconds of each stage.
  std::vector<double> note_stages(ActiveDevice& device, int row,
                                  std::span<const char* const> stages, const std::string& what,
                                  float begin, std::span<const float> end,
                                  std::span<BusyTimes> busy) const;
  // What runs out of host memory outside a chain ends the device's part, not the process.
  template <typename Work>
  void surviving(ActiveDevice& device, Work&& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      availability.lose(device, {ErrorCode::kResources, "out of host memory", {}, {}});
    }
  }
  // For a turn of a thread: what runs out of host memory elsewhere ends the search, not the
  // process. Whether the thread goes on.
  template <typename Turn>
  bool take_turn(Turn&& turn) noexcept {
    try {
      return turn();
    } catch (const std::bad_alloc&) {
      out_of_memory();
      return true;
    }
  }
  void out_of_memory() noexcept;
  // See delivery.hpp; counts the pairs.
  void deliver_and_count(DomainWork& work);
  // Without a kernel, or without a device: the first reason there was.
  std::string reason() const;
};

// The buffers of a lane, counted with the device's memory.
Cascade::Resize resize_in(DeviceMemory& memory);

}  // namespace hmmjit::gpu
