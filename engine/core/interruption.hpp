// Sections that a signal must not interrupt.
#pragma once

namespace hmmjit {

/// While a hold exists, the program's signal handlers postpone the end of the process: only the
/// holding thread knows the state of the files that it creates or publishes. Any number of holds
/// may exist, on any threads; keep them short. If the process has already been interrupted, the
/// constructor does not return. Without handlers that call `interrupt`, as in a library, a hold has
/// no effect.
class InterruptionHold {
 public:
  InterruptionHold() noexcept;
  /// Raises the postponed signal, unless `for_good` was called.
  ~InterruptionHold();
  InterruptionHold(const InterruptionHold&) = delete;
  InterruptionHold& operator=(const InterruptionHold&) = delete;

  /// Declares the outcome of the process final: postponed signals are dropped.
  void for_good() noexcept { for_good_ = true; }

 private:
  bool for_good_ = false;
};

/// For a signal handler that wants to end the process because of `signal`. True: the handler must
/// end the process; no hold begins from now on. False: `signal` is postponed until the last hold
/// ends, or another thread is already ending the process. Async-signal-safe.
bool interrupt(int signal) noexcept;

}  // namespace hmmjit
