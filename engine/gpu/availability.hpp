// Whether there are devices to work on.
#pragma once

#include <memory>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/active_device.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/client_calls.hpp"
#include "gpu/counters.hpp"
#include "gpu/segments.hpp"

namespace hmmjit::gpu {

/// From the start of the driver to the loss of the last device. Thread-safe; calls nobody while it
/// is locked.
class Availability {
 public:
  Availability(const Settings& settings, ClientCalls& clients, BlockGroups& groups,
               Segments& segments, Counters& counters, ChangeSignal& changed)
      : settings_(settings),
        clients_(clients),
        groups_(groups),
        segments_(segments),
        counters_(counters),
        changed_(changed) {}

  enum class Phase { kStarting, kReady, kFailed };
  Phase phase() const;
  /// The devices that work; no others will be added.
  void set_devices(std::vector<std::unique_ptr<ActiveDevice>> devices);
  /// Their lanes have been started.
  void ready();
  /// Empty until set_devices().
  std::vector<ActiveDevice*> devices() const;

  /// No device will ever work (again): the host does everything that is not claimed.
  void fail_all(const Error& error);
  /// The same without an allocation, for the search that is running, which ends: memory of the host
  /// has run out where its devices cannot go on.
  void out_of_memory() noexcept;
  /// A launch failed or timed out, or the driver does not answer any more: this device is given up.
  void lose(ActiveDevice& device, const Error& error);
  /// What is still open on a lost device goes to the others, and to the host where its segment has
  /// been in use. A lane that still works on the segment calls this again when it has ended.
  void leave_if_lost(const ActiveDevice& device);
  /// A client has been attached, which knows nothing of failures yet.
  void greet();

 private:
  // Without a client there is nobody to report to, and nothing to release.
  void report_failure();

  const Settings& settings_;
  ClientCalls& clients_;
  BlockGroups& groups_;
  Segments& segments_;
  Counters& counters_;
  ChangeSignal& changed_;
  mutable Mutex mutex_;
  Phase phase_ HMMJIT_GUARDED_BY(mutex_) = Phase::kStarting;
  std::vector<std::unique_ptr<ActiveDevice>> devices_ HMMJIT_GUARDED_BY(mutex_);
  Error failure_ HMMJIT_GUARDED_BY(mutex_);
  Error out_of_memory_ HMMJIT_GUARDED_BY(mutex_){
      ErrorCode::kResources, "out of host memory", {}, {}};
  bool reported_ HMMJIT_GUARDED_BY(mutex_) = false;
};

}  // namespace hmmjit::gpu
