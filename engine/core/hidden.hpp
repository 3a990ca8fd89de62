// Members of a type that only one source file knows.
#pragma once

#include <memory>
#include <utility>

namespace hmmjit {

/// Owns a T. Because it knows how to delete it, its owner needs no destructor and no move functions
/// of its own where T is incomplete.
template <typename T>
using Hidden = std::unique_ptr<T, void (*)(T*)>;

template <typename T, typename... Arguments>
Hidden<T> make_hidden(Arguments&&... arguments) {
  return {new T{std::forward<Arguments>(arguments)...}, [](T* object) { delete object; }};
}

}  // namespace hmmjit
