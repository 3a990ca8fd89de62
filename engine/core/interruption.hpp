// What a signal that ends the process must not interrupt.
#pragma once

namespace hmmjit {

/// While one exists, the program's signal handlers put off the end of the process: the files that
/// are being created or published are in a state that only this thread knows. Any number, on any
/// threads; must be short. Where the process has been interrupted already, the constructor does
/// not return. Without handlers that ask `interrupt`, as in a library, nothing happens.
class InterruptionHold {
 public:
  InterruptionHold() noexcept;
  /// Raises the signal that was put off, unless `for_good` was called.
  ~InterruptionHold();
  InterruptionHold(const InterruptionHold&) = delete;
  InterruptionHold& operator=(const InterruptionHold&) = delete;

  /// The outcome of the process is decided: a signal does not change it any more.
  void for_good() noexcept { for_good_ = true; }

 private:
  bool for_good_ = false;
};

/// Called by a signal handler that wants to end the process by `signal`. True: from now on no hold
/// begins, and the caller is to end the process; false: `signal` is put off until the last hold
/// ends, or another thread is ending the process already. Async-signal-safe.
bool interrupt(int signal) noexcept;

}  // namespace hmmjit
