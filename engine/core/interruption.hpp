// Sections that a signal must not interrupt.
#pragma once

namespace hmmjit {

/// While one exists, the program's signal handlers postpone the end of the process: only this
/// thread knows the state of the files that it creates or publishes. Any number, on any threads;
/// must be short. If the process has been interrupted already, the constructor does not return.
/// Without handlers that call `interrupt`, as in a library, nothing happens.
class InterruptionHold {
 public:
  InterruptionHold() noexcept;
  /// Raises the postponed signal, unless `for_good` was called.
  ~InterruptionHold();
  InterruptionHold(const InterruptionHold&) = delete;
  InterruptionHold& operator=(const InterruptionHold&) = delete;

  /// The outcome of the process is final: postponed signals are dropped.
  void for_good() noexcept { for_good_ = true; }

 private:
  bool for_good_ = false;
};

/// Called by a signal handler that wants to end the process by `signal`. True: no hold begins from
/// now on, and the caller must end the process. False: `signal` is postponed until the last hold
/// ends, or another thread is ending the process already. Async-signal-safe.
bool interrupt(int signal) noexcept;

}  // namespace hmmjit
