// Cancellation of work, and waits that can be cancelled.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "core/descriptor.hpp"

namespace hmmjit {

/// A one-shot event. Thread-safe.
class Event {
 public:
  /// Throws std::system_error if the process runs out of descriptors.
  Event();
  /// Async-signal-safe.
  void happen() const noexcept { ::eventfd_write(descriptor_.get(), 1); }

 private:
  friend class Cancellation;
  const Descriptor descriptor_;
};

/// A request to end work early, made by cancel() or by a deadline. Wakes waiters. Thread-safe.
class Cancellation {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Cancelled also when `other` (may be null) is.
  explicit Cancellation(const Cancellation* other = nullptr, std::optional<Time> deadline = {})
      : other_(other), deadline_(deadline) {}
  /// Async-signal-safe.
  void cancel() noexcept {
    cancelled_ = true;
    event_.happen();
  }
  bool cancelled() const noexcept;
  /// Waits until `event` happens; returns false if `cancellation` (may be null) is cancelled first.
  static bool wait(const Event& event, const Cancellation* cancellation);

 private:
  const Cancellation* const other_;
  const std::optional<Time> deadline_;
  std::atomic<bool> cancelled_{false};
  const Event event_;
};

}  // namespace hmmjit
