// Ending work early, and waiting for something that may be cancelled.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "core/descriptor.hpp"

namespace hmmjit {

/// Happens once. Thread-safe.
class Event {
 public:
  /// Throws std::system_error where the process has no descriptor left.
  Event();
  /// Async-signal-safe.
  void happen() const noexcept { ::eventfd_write(descriptor_.get(), 1); }

 private:
  friend class Cancellation;
  const Descriptor descriptor_;
};

/// Ends work early: when it is told to, or at a time. Thread-safe. Nobody needs to ask it in order
/// to be woken.
class Cancellation {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `other`: ends the work as well; may be null.
  explicit Cancellation(const Cancellation* other = nullptr, std::optional<Time> deadline = {})
      : other_(other), deadline_(deadline) {}
  /// Async-signal-safe.
  void cancel() noexcept {
    cancelled_ = true;
    event_.happen();
  }
  bool cancelled() const noexcept;
  /// Waits until `event` happens. False: cancelled before. `cancellation`: may be null.
  static bool wait(const Event& event, const Cancellation* cancellation);

 private:
  const Cancellation* const other_;
  const std::optional<Time> deadline_;
  std::atomic<bool> cancelled_{false};
  const Event event_;
};

}  // namespace hmmjit
