// Shared by the files of the C interface, which include only public C++ headers, like a host:
// handles, and errors as statuses.
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "api/structs.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/hmmjit.hpp"

template <typename T>
struct Handle {
  T value;
};
struct hmmjit_error : Handle<hmmjit::Error> {};
struct hmmjit_text : Handle<std::string> {};
struct hmmjit_models : Handle<hmmjit::Models> {};
struct hmmjit_targets : Handle<hmmjit::Targets> {};
struct hmmjit_result : Handle<hmmjit::ModelResult> {};
struct hmmjit_report : Handle<hmmjit::Report> {};
struct hmmjit_results {
  hmmjit::SearchStatistics statistics;
  hmmjit::SearchOptions options;
  std::vector<hmmjit_result> models;
};

namespace hmmjit::c_interface {

using namespace hmmjit::v0;

/// Runs `work`; converts an exception to a status and an error object.
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
    }
  } catch (...) {  // no memory for the error itself
    if (error != nullptr) *error = nullptr;
    return HMMJIT_RESOURCES;
  }
}

inline std::string_view view_of(const void* bytes, std::size_t size) {
  const auto* text = static_cast<const char*>(bytes);
  if (size > 0) required(text, "bytes");
  return {text, size};
}

/// The object of a handle that must not be NULL.
template <typename T>
auto& object(T* handle, const char* name) {
  return required(handle, name).value;
}

template <typename T, typename... Parts>
void give(T** out, Parts&&... parts) {
  required(out, "the handle to fill");
  *out = new T{std::forward<Parts>(parts)...};
}

inline hmmjit::Alphabet to_alphabet(std::int32_t number) {
  check_choice(number, HMMJIT_RNA, "alphabet");
  return static_cast<hmmjit::Alphabet>(number);
}

hmmjit_device to_c(const hmmjit::Device& device);
hmmjit::Device to_cpp(const hmmjit_device& device);
/// The callbacks of a host; `c` must outlive the returned object.
hmmjit::SearchCallbacks to_callbacks(const hmmjit_callbacks& c);

}  // namespace hmmjit::c_interface
