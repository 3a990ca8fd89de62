// Ending work early, and waiting for something that may be cancelled.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "core/descriptor.hpp"

namespace hmmjit {

/// An event that happens once. Thread-safe.
class Event {
 public:
  /// Throws std::system_error if the process has no descriptor left.
  Event();
  /// Async-signal-safe.
  void happen() const noexcept { ::eventfd_write(descriptor_.get(), 1); }

 private:
  friend class Cancellation;
  const Descriptor descriptor_;
};

/// Ends work early, on request or at a deadline. Thread-safe. Waiters are woken; they need not
/// poll.
class Cancellation {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `other` also cancels this one; may be null.
  explicit Cancellation(const Cancellation* other = nullptr, std::optional<Time> deadline = {})
      : other_(other), deadline_(deadline) {}
  /// Async-signal-safe.
  void cancel() noexcept {
    cancelled_ = true;
    event_.happen();
  }
  bool cancelled() const noexcept;
  /// Waits until `event` happens; returns false if cancelled first. `cancellation` may be null.
  static bool wait(const Event& event, const Cancellation* cancellation);

 private:
  const Cancellation* const other_;
  const std::optional<Time> deadline_;
  std::atomic<bool> cancelled_{false};
  const Event event_;
};

}  // namespace hmmjit
