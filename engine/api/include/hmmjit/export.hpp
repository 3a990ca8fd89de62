// Symbol visibility, the namespace of the public interface, and the base of its handles.
//
// All public names are in the inline namespace hmmjit::v0: hosts write hmmjit::Engine, the linker
// sees hmmjit::v0::Engine, and a later, incompatible interface can coexist with this one.
#pragma once

#if __cplusplus < 202002L
#error "hmmjit's C++ headers need C++20 (-std=c++20); hmmjit/hmmjit.h is the C interface"
#endif

#include <memory>
#include <type_traits>
#include <utility>

#define HMMJIT_EXPORT __attribute__((visibility("default")))

// Not inline inside the library: internals in hmmjit:: have the same names.
#ifdef HMMJIT_BUILDING_LIBRARY
#define HMMJIT_BEGIN_NAMESPACE \
  namespace hmmjit {           \
  namespace v0 {
#else
#define HMMJIT_BEGIN_NAMESPACE \
  namespace hmmjit {           \
  inline namespace v0 {
#endif
#define HMMJIT_END_NAMESPACE \
  }                          \
  }

HMMJIT_BEGIN_NAMESPACE

/// The base of handles: copies share one object of the library.
template <typename Object>
class SharedHandle {
 public:
  using Impl = std::remove_const_t<Object>;
  explicit SharedHandle(std::shared_ptr<Object> impl) noexcept : impl_(std::move(impl)) {}
  const std::shared_ptr<Object>& impl() const noexcept {
    return impl_;
  }  ///< for the library itself

 protected:
  std::shared_ptr<Object> impl_;
};

HMMJIT_END_NAMESPACE
