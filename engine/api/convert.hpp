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

/// The error for a host: options of the program that it names are members of the library's structs.
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

/// "out of memory", made at start-up, because there may be no memory for it later.
const Error& out_of_memory() noexcept;

/// Runs `work` and turns exceptions of the standard library into Error, the only exception type of
/// the interface. Host functions must be called through HostCalls instead.
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
  } catch (const std::bad_alloc&) {  // no memory for the text of an error
    throw Error(out_of_memory());
  }
}

Device to_device(const plan::DeviceTraits& traits, int ordinal);
plan::DeviceTraits to_traits(const Device& device);

}  // namespace hmmjit::v0
