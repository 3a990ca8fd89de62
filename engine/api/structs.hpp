// Reads and writes structs of hmmjit.h, which begin with their size.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "hmmjit/cache.hpp"
#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/search.hpp"

struct hmmjit_cache {
  hmmjit::v0::Cache value;
};
struct hmmjit_cancellation {
  hmmjit::v0::Cancellation value;
};

HMMJIT_BEGIN_NAMESPACE

/// "None" in members that are scores or cutoffs.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] inline void misused(const std::string& what) { throw Error(ErrorCode::kUsage, what); }

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) misused(std::string(name) + " must not be NULL");
  return *pointer;
}

inline std::string text_of(const char* text) { return text != nullptr ? text : ""; }

/// Enumerations count from 0.
inline void check_choice(std::int32_t number, std::int32_t last, const char* what) {
  if (number < 0 || number > last)
    misused("no " + std::string(what) + " has the number " + std::to_string(number));
}

/// Refuses sizes that no struct has: the member is probably uninitialised.
inline void check_size(std::size_t size) {
  constexpr std::size_t kLargestStruct = 4096;
  if (size < sizeof(std::size_t)) misused("a struct whose size is not set");
  if (size > kLargestStruct || size % sizeof(std::size_t) != 0)
    misused("a struct of " + std::to_string(size) + " bytes: set its size to sizeof");
}

/// The caller's struct, with `defaults` for members that the caller does not know.
template <typename T>
T read(const T* given, std::type_identity_t<T> defaults = {}) {
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
  defaults.size = sizeof(T);  // readers of the copy must stay within it
  return defaults;
}

/// Element `index` of an array of elements of `size` bytes.
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
void write(T* out, const std::type_identity_t<T>& full) {
  check_size(required(out, "the struct to fill").size);
  write(out, full, out->size);
}

/// The device properties with equal names in all of the library's device structs.
template <typename Properties>
auto limits_of(Properties& d) {
  return std::tie(d.major, d.minor, d.sm_count, d.clock_khz, d.max_threads_per_sm,
                  d.max_blocks_per_sm, d.registers_per_sm, d.max_registers_per_thread,
                  d.shared_per_sm, d.shared_reserved_per_block, d.memory_bytes, d.l2_bytes,
                  d.memory_bandwidth);
}

HMMJIT_END_NAMESPACE
