// Shared by the files of the C interface: handles, sized structs, errors as statuses. They include
// public C++ headers only, as a host does.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "api/copy_members.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/hmmjit.hpp"

struct hmmjit_error {
  hmmjit::Error value;
};
struct hmmjit_text {
  std::string value;
};
struct hmmjit_models {
  hmmjit::Models value;
};
struct hmmjit_targets {
  hmmjit::Targets value;
};
struct hmmjit_cache {
  hmmjit::Cache value;
};
struct hmmjit_cancellation {
  hmmjit::Cancellation value;
};
struct hmmjit_result {
  hmmjit::ModelResult value;
};
struct hmmjit_results {
  hmmjit::SearchStatistics statistics;
  hmmjit::SearchOptions options;
  std::vector<hmmjit_result> models;
};
struct hmmjit_report {
  hmmjit::Report value;
};

namespace hmmjit::c_interface {

using hmmjit::Error;
using hmmjit::ErrorCode;

[[noreturn]] inline void misused(const std::string& what) { throw Error(ErrorCode::kUsage, what); }

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) misused(std::string(name) + " must not be NULL");
  return *pointer;
}

inline std::string text_of(const char* text) { return text != nullptr ? text : ""; }

/// Runs `work` and turns exceptions into a status and an error object.
template <typename Work>
std::int32_t run(hmmjit_error** error, Work&& work) noexcept {
  const auto failed = [error](const Error& e) {
    if (error != nullptr) *error = new (std::nothrow) hmmjit_error{e};
    return static_cast<std::int32_t>(e.code());
  };
  try {
    try {
      work();
      return HMMJIT_OK;
    } catch (const Error& e) {
      return failed(e);
    } catch (const std::bad_alloc&) {
      return failed(Error(ErrorCode::kResources, "out of memory"));
    } catch (const std::exception& e) {
      return failed(Error(ErrorCode::kInternal, e.what()));
    } catch (...) {
      return failed(Error(ErrorCode::kInternal, "an unknown exception"));
    }
  } catch (...) {  // no memory for the error itself
    if (error != nullptr) *error = nullptr;
    return HMMJIT_RESOURCES;
  }
}

/// Refuses sizes that no struct has: an uninitialised member holds such a number.
inline void check_size(std::size_t size) {
  constexpr std::size_t kLargestStruct = 4096;
  if (size < sizeof(std::size_t)) misused("a struct whose size is not set");
  if (size > kLargestStruct || size % sizeof(std::size_t) != 0)
    misused("a struct of " + std::to_string(size) + " bytes: set its size to sizeof");
}

/// The caller's struct; members that the caller does not know have their `defaults`.
template <typename T>
T read(const T* given, T defaults = {}) {
  if (given == nullptr) return defaults;
  check_size(given->size);
  std::memcpy(&defaults, given, std::min(given->size, sizeof(T)));
  if constexpr (requires { defaults.reserved; }) {
    if (defaults.reserved != 0) misused("a reserved member is not zero");
  }
  if constexpr (requires { defaults.reserved_too; }) {
    if (defaults.reserved_too != 0) misused("a reserved member is not zero");
  }
  // Members of a later version must not be used.
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < given->size; ++i) {
    if (bytes[i] != 0) misused("a member that this version of the library does not know is set");
  }
  return defaults;
}

/// Element `index` of an array whose elements have the size that the first one tells.
template <typename T>
T* element(T* array, std::size_t index, std::size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + index * size);
}

template <typename T>
void write(T* out, T full, std::size_t size) {
  full.size = size;
  std::memcpy(static_cast<void*>(out), &full, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
}
template <typename T>
void write(T* out, const T& full) {
  check_size(required(out, "the struct to fill").size);
  write(out, full, out->size);
}

template <typename Handle, typename... Parts>
void give(Handle** out, Parts&&... parts) {
  required(out, "the handle to fill");
  *out = new Handle{std::forward<Parts>(parts)...};
}

template <typename Enum>
Enum to_enum(std::int32_t number, std::int32_t last, const char* what) {
  if (number < 0 || number > last)
    misused("no " + std::string(what) + " has the number " + std::to_string(number));
  return static_cast<Enum>(number);
}
inline hmmjit::Alphabet to_alphabet(std::int32_t number) {
  return to_enum<hmmjit::Alphabet>(number, HMMJIT_RNA, "alphabet");
}

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

inline std::optional<double> given(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}
inline std::optional<double> positive(double value) {
  if (value == 0) return std::nullopt;
  return value;
}

hmmjit_search_options default_options();
hmmjit::SearchOptions to_options(const hmmjit_search_options* given_options);
/// The options that results depend on; those of the machine have their defaults.
hmmjit_search_options to_c(const hmmjit::SearchOptions& options);
/// The callbacks of a host; `c` must outlive the returned object.
hmmjit::SearchCallbacks to_callbacks(const hmmjit_callbacks& c);
/// A handle for results, which are moved into it.
std::unique_ptr<hmmjit_results> to_results(hmmjit::SearchResults found);
hmmjit_device to_c(const hmmjit::Device& d);
hmmjit::Device to_cpp(const hmmjit_device& d);

}  // namespace hmmjit::c_interface
