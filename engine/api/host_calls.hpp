// Calls of functions that belong to the host: callbacks, visitors, catalogue entries.
#pragma once

#include <exception>
#include <mutex>

#include "api/convert.hpp"
#include "core/float_mode.hpp"

namespace hmmjit::v0 {

/// Runs host functions as if the host had called them: in the floating-point mode that its thread
/// had when this object was made (the library flushes subnormal numbers to zero), and with their
/// exceptions passed on unchanged. Thread-safe.
class HostCalls {
 public:
  HostCalls() : mode_(float_mode()) {}
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  /// False when `call` threw; the first exception is kept.
  template <typename Call>
  bool run(Call&& call) {
    const FloatModeScope mode(mode_);
    try {
      call();
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!exception_) exception_ = std::current_exception();
      return false;
    }
  }
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return exception_ != nullptr;
  }
  /// Rethrows the kept exception. Call it outside guarded(), which would convert the exception.
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  const FloatMode mode_;
  mutable std::mutex mutex_;
  std::exception_ptr exception_;
};

/// Thrown by the library to leave a guarded() after a host function has failed.
struct HostFailed {};

/// As guarded(), but rethrows exceptions of host functions unchanged.
template <typename Work>
auto guarded(HostCalls& host, Work&& work) -> decltype(work()) {
  try {
    return guarded(std::forward<Work>(work));
  } catch (const HostFailed&) {
    host.rethrow();
    throw Error(ErrorCode::kInternal, "a host function failed without an exception");
  }
}

}  // namespace hmmjit::v0
