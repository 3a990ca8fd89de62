// Converts errors as values, of the internals, to exceptions of the public interface, and calls
// functions of the host: callbacks, visitors, catalogue entries.
#pragma once

#ifndef HMMJIT_BUILDING_LIBRARY
#error "the namespaces of internals and interface would clash: define HMMJIT_BUILDING_LIBRARY"
#endif

#include <exception>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/float_mode.hpp"
#include "core/output_file.hpp"
#include "hmmjit/device.hpp"
#include "hmmjit/error.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::v0 {

/// The error for a host: replaces the program's option names by members of the library's structs.
Error to_public(const hmmjit::Error& error);

[[noreturn]] inline void raise(const hmmjit::Error& error) { throw to_public(error); }

inline void check(const Status& status) {
  if (!status) raise(status.error());
}
template <typename T>
T value(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

/// Throws Error kUsage for an output without a name, or equal to one of `inputs`, which `option`
/// describes.
void check_output(const std::string& path, std::span<const NamedFile> inputs = {});

/// "out of memory", made at start-up: later there may be no memory for it.
const Error& out_of_memory() noexcept;

/// Runs `work` with the default floating-point mode, whatever the host's; converts exceptions
/// of the standard library to Error, the interface's only exception type. Call host functions
/// through HostCalls instead.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  const FloatControlScope control({});
  try {
    try {
      return work();
    } catch (const Error&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw Error(out_of_memory());
    } catch (const std::length_error&) {  // a size no memory could have
      throw Error(out_of_memory());
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::kResources, error.what());
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kInternal, error.what());
    }
  } catch (const std::bad_alloc&) {  // no memory for the text of an error
    throw Error(out_of_memory());
  }
}

/// Runs host functions as if the host called them: with the floating-point mode of the thread
/// that made this object, and without conversion of their exceptions. Make it outside guarded().
/// Thread-safe.
class HostCalls {
 public:
  HostCalls() : control_(float_control()) {}
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  /// False if `call` throws; keeps the first exception.
  template <typename Call>
  bool run(Call&& call) {
    const FloatControlScope control(control_);
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
  const FloatControl control_;
  mutable std::mutex mutex_;
  std::exception_ptr exception_;
};

/// Thrown by the library to leave a guarded() after a host function has failed.
struct HostFailed {};

/// As guarded(), but rethrows a host function's exception unchanged.
template <typename Work>
auto guarded(HostCalls& host, Work&& work) -> decltype(work()) {
  try {
    return guarded(std::forward<Work>(work));
  } catch (const HostFailed&) {
    host.rethrow();
    throw Error(ErrorCode::kInternal, "a host function failed without an exception");
  }
}

Device to_device(const plan::DeviceTraits& traits, int ordinal);
plan::DeviceTraits to_traits(const Device& device);

}  // namespace hmmjit::v0
