// Between the internals, whose errors are values, and the public interface, which throws.
#pragma once

#ifndef HMMJIT_BUILDING_LIBRARY
#error "the namespaces of internals and interface would clash: define HMMJIT_BUILDING_LIBRARY"
#endif

#include <new>
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
inline hmmjit::Error internal_error(const Error& error) {
  return {static_cast<hmmjit::ErrorCode>(error.code()), error.message(), error.where(),
          error.remedy()};
}

inline void check(const Status& status) {
  if (!status) raise(status.error());
}
template <typename T>
T value(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

/// Runs `work`; what the standard library throws for want of memory or threads becomes an Error.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kResources, "out of memory");
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kResources, error.what());
  }
}

Device to_device(const plan::DeviceTraits& traits, int ordinal);
plan::DeviceTraits to_traits(const Device& device);

}  // namespace hmmjit::v0
