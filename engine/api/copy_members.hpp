// Copies between structs with members of equal names; members.hpp lists the members.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "api/members.hpp"

namespace hmmjit_members {

template <typename To, typename From>
requires(!std::is_pointer_v<To> && !std::is_function_v<From> &&
         requires(const From& from) { static_cast<To>(from); }) void put(To& to, const From& from) {
  to = static_cast<To>(from);
}
/// NaN stands for none.
inline void put(double& to, const std::optional<double>& from) {
  to = from.value_or(std::numeric_limits<double>::quiet_NaN());
}
inline void put(std::optional<double>& to, double from) {
  to = std::isnan(from) ? std::nullopt : std::optional(from);
}
inline void put(const char*& to, const std::string& from) { to = from.c_str(); }
/// Views of a result: all of its texts end with a NUL.
inline void put(const char*& to, std::string_view from) { to = from.empty() ? "" : from.data(); }
inline void put(std::string& to, const char* from) { to = from != nullptr ? from : ""; }
template <std::size_t size>
void put(char (&to)[size], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), size - 1));
}
template <std::size_t size>
void put(std::string& to, const char (&from)[size]) {
  to.assign(from, ::strnlen(from, size));
}

}  // namespace hmmjit_members

// `LIST`: a macro of members.hpp. `others`: how many of its members are copied by other means. An
// expression; call it with the struct to fill and the one to read.
#define HMMJIT_HAS_NO(member)                           \
  +!requires {                                          \
    ::hmmjit_members::put(filled.member, given.member); \
  }
#define HMMJIT_PUT(member)                                                        \
  if constexpr (requires { ::hmmjit_members::put(filled.member, given.member); }) \
    ::hmmjit_members::put(filled.member, given.member);
#define HMMJIT_COPY_MEMBERS(LIST, others)                                      \
  [](auto& filled, const auto& given) {                                        \
    static_assert(0 LIST(HMMJIT_HAS_NO) == (others), "members are forgotten"); \
    LIST(HMMJIT_PUT)                                                           \
  }
