// State shared by the threads of all devices: components, each with its own duty and lock, and the
// state of the devices.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "core/threads.hpp"
#include "gpu/active_device.hpp"
#include "gpu/active_models.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/client.hpp"
#include "gpu/delivery.hpp"
#include "gpu/gpu_filters.hpp"
#include "gpu/kernel_store.hpp"
#include "gpu/target_store.hpp"

namespace hmmjit::gpu {

/// kFailed: no device works, and none will.
enum class Phase { kStarting, kReady, kFailed };

/// All that the lanes, the packer and the clients of one GpuFilters share.
struct EngineState {
  explicit EngineState(Settings s)
      : settings(std::move(s)),
        kernels({.finer_kernel_seconds = settings.finer_kernel_seconds,
                 .trace = settings.trace,
                 .changed =
                     [this] {
                       changed.raise();
                       handed_over.raise();
                     },
                 .out_of_memory = [this] { out_of_memory(); }}) {}

  const Settings settings;
  ChangeSignal changed;      // for the filters: pairs, segments, kernels
  ChangeSignal handed_over;  // for the domain stage: chains
  ClientCalls clients;
  Counters counters;
  ActiveModels models;
  TargetStore targets{settings, counters, changed};

  // ---- the devices, from the start of the driver to the loss of the last one -------------------

  Phase phase() const;
  // Whether the queues of the domain stage take chains, also those of devices that are still to
  // come. What waits in closed ones is dropped.
  void open_queues(bool open);
  // The devices that work; no others will be added.
  void set_devices(std::vector<std::unique_ptr<ActiveDevice>> devices);
  // Call this once their lanes have been started.
  void ready();
  // Empty until set_devices().
  std::vector<ActiveDevice*> devices() const;
  // Device number `n`, without an allocation; null beyond the last.
  ActiveDevice* device(std::size_t n) const;
  // No device will work from now on: everything that has not been claimed falls back to the CPU.
  void fail_all(const Error& error);
  // A client has been attached; it is told of an earlier failure.
  void begin_client();
  // Like fail_all(), for a host that is out of memory, which ends the running search. Allocates
  // nothing.
  void out_of_memory() noexcept;
  // Gives up a device because a launch failed or timed out, or the driver does not answer.
  void lose(ActiveDevice& device, const Error& error);
  // Moves a lost device's open work to other devices, or to the CPU if none of them can take its
  // segment. A lane that still works on the segment calls this again when it has finished.
  void leave_if_lost(const ActiveDevice& device);

 private:
  // Does nothing without a client.
  void report_failure();

  mutable Mutex mutex_;
  Phase phase_ HMMJIT_GUARDED_BY(mutex_) = Phase::kStarting;
  std::vector<std::unique_ptr<ActiveDevice>> devices_ HMMJIT_GUARDED_BY(mutex_);
  bool queues_are_open_ HMMJIT_GUARDED_BY(mutex_) = true;
  Error failure_ HMMJIT_GUARDED_BY(mutex_);
  std::atomic<bool> told_{false};  // the client has been told of it
  std::atomic<bool> warned_memory_{false};

 public:
  KernelStore kernels;  // its threads use all of the above
  std::atomic<bool> stop{false}, packer_waits{false};
  std::atomic<bool> warned_kernel{false};

  void warn(const std::string& text) const {
    if (settings.on_warning) settings.on_warning(text);
  }
  // Once: the device has refused memory, and the search goes on with `what`.
  void warn_of_memory(const Error& refused, std::string_view what) {
    if (!warned_memory_.exchange(true))
      warn(refused.to_string() + "; going on with " + std::string(what));
  }
  void span(const char* group, int row, std::string_view name, double begin, double end) const {
    if (settings.trace != nullptr) settings.trace->add(group, row, name, begin, end);
  }
  // Records the times of a launch's stages in the timeline (on `row`, with the stage's name before
  // `what`) and in `busy`. `begin` and `end` are in milliseconds since the device's origin. Returns
  // the seconds of each stage.
  std::vector<double> note_stages(ActiveDevice& device, int row,
                                  std::span<const char* const> stages, const std::string& what,
                                  double begin, std::span<const double> end,
                                  std::span<BusyTimes> busy) const;
  // If the thread runs out of memory, it ends and so does the search.
  std::thread thread(const char* name, std::function<void()> work) {
    return thread_until_out_of_memory(name, std::move(work), [this] { out_of_memory(); });
  }
  // Counts the cells of targets that fall back to the CPU without a launch.
  void count_fallback(HostReason reason, std::uint64_t cells) {
    counters.update([&](Statistics& s) {
      s.domain_stages[0].host_cells[static_cast<std::size_t>(reason)] += cells;
    });
  }
  // See delivery.hpp; counts the pairs.
  void deliver_and_count(DomainWork& work);
  // The first reason why there is no device or kernel.
  std::string reason() const;
};

/// The devices that work, with the resources that their lanes may use, or the first error if none
/// of the settings' devices works. Takes tenths of a second, during which kernels are requested.
Result<std::vector<std::unique_ptr<ActiveDevice>>> start_devices(EngineState& engine);

// Sizes a lane's buffers within the device's memory. Targets of earlier searches give way.
Cascade::Resize resize_on(ActiveDevice& device, TargetStore& targets);

}  // namespace hmmjit::gpu
