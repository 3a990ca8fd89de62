// Whether there are devices to work on.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"

namespace hmmjit::gpu {

struct ActiveDevice;
class ChangeSignal;
class ClientCalls;
class Counters;
struct Settings;
class TargetStore;

/// The state of the devices, from the start of the driver to the loss of the last one.
/// Thread-safe; calls nothing while it is locked.
class Availability {
 public:
  Availability(const Settings& settings, ClientCalls& clients, TargetStore& targets,
               Counters& counters, ChangeSignal& changed);
  ~Availability();

  enum class Phase { kStarting, kReady, kFailed };
  Phase phase() const;
  /// The devices that work; no others will be added.
  void set_devices(std::vector<std::unique_ptr<ActiveDevice>> devices);
  /// Their lanes have been started.
  void ready();
  /// Empty until set_devices().
  std::vector<ActiveDevice*> devices() const;
  /// Device number `n` of them, without an allocation; null beyond the last.
  ActiveDevice* device(std::size_t n) const;

  /// No device will work any more: everything that is not claimed falls back to the CPU.
  void fail_all(const Error& error);
  /// The same where the host is out of memory, which ends the running search. Allocates nothing.
  void out_of_memory() noexcept;
  /// A launch failed or timed out, or the driver does not answer: this device is lost.
  void lose(ActiveDevice& device, const Error& error);
  /// Open work of a lost device goes to other devices, or to the CPU if no other device can take
  /// its segment. A lane that still works on the segment calls this again when it has finished.
  void leave_if_lost(const ActiveDevice& device);
  /// A client has been attached: reports an earlier failure to it.
  void report_pending_failure();

 private:
  // Does nothing without a client.
  void report_failure();

  const Settings& settings_;
  ClientCalls& clients_;
  TargetStore& targets_;
  Counters& counters_;
  ChangeSignal& changed_;
  mutable Mutex mutex_;
  Phase phase_ HMMJIT_GUARDED_BY(mutex_) = Phase::kStarting;
  std::vector<std::unique_ptr<ActiveDevice>> devices_ HMMJIT_GUARDED_BY(mutex_);
  Error failure_ HMMJIT_GUARDED_BY(mutex_);
  bool reported_ HMMJIT_GUARDED_BY(mutex_) = false;
};

}  // namespace hmmjit::gpu
