// Between the internals, whose errors are values, and the public interface, which throws.
#pragma once

#ifndef HMMJIT_BUILDING_LIBRARY
#error "the namespaces of internals and interface would clash: define HMMJIT_BUILDING_LIBRARY"
#endif

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "hmmjit/device.hpp"
#include "hmmjit/error.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::v0 {

[[noreturn]] inline void raise(const hmmjit::Error& error) {
  throw Error(static_cast<ErrorCode>(error.code), error.message, error.where, error.remedy);
}

inline void check(const Status& status) {
  if (!status) raise(status.error());
}
template <typename T>
T value(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

/// "out of memory", made beforehand: there may be no memory for it when it is wanted.
const Error& out_of_memory() noexcept;

/// Runs `work`; what the standard library throws becomes an Error, the one exception of the
/// interface. Host functions are not called within it, but through HostCalls.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
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
  } catch (const std::bad_alloc&) {  // of an error's own text
    throw Error(out_of_memory());
  }
}

Device to_device(const plan::DeviceTraits& traits, int ordinal);
plan::DeviceTraits to_traits(const Device& device);

}  // namespace hmmjit::v0
