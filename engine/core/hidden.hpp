// Members whose type is defined in one source file only.
#pragma once

#include <memory>
#include <utility>

namespace hmmjit {

/// Owns a T, with its deleter: a class with such a member needs no user-declared destructor or move
/// functions where T is incomplete.
template <typename T>
using Hidden = std::unique_ptr<T, void (*)(T*)>;

template <typename T, typename... Arguments>
Hidden<T> make_hidden(Arguments&&... arguments) {
  return {new T{std::forward<Arguments>(arguments)...}, [](T* object) { delete object; }};
}

}  // namespace hmmjit
