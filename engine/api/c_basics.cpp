// The C interface: errors, version, texts, devices.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace hmmjit::c_interface {

namespace {

// Calls `copy` with each number of a device, C and C++ form.
template <typename C, typename Cpp, typename Copy>
void for_each_number(C& c, Cpp& cpp, Copy copy) {
  copy(c.ordinal, cpp.ordinal);
  copy(c.major, cpp.major);
  copy(c.minor, cpp.minor);
  copy(c.sm_count, cpp.sm_count);
  copy(c.clock_khz, cpp.clock_khz);
  copy(c.max_threads_per_sm, cpp.max_threads_per_sm);
  copy(c.max_blocks_per_sm, cpp.max_blocks_per_sm);
  copy(c.registers_per_sm, cpp.registers_per_sm);
  copy(c.max_registers_per_thread, cpp.max_registers_per_thread);
  copy(c.shared_per_sm, cpp.shared_per_sm);
  copy(c.shared_per_block, cpp.shared_per_block);
  copy(c.shared_reserved_per_block, cpp.shared_reserved_per_block);
  copy(c.memory_bytes, cpp.memory_bytes);
  copy(c.l2_bytes, cpp.l2_bytes);
  copy(c.memory_bandwidth, cpp.memory_bandwidth);
}

}  // namespace

hmmjit_device to_c(const hmmjit::Device& d) {
  hmmjit_device out{};
  std::memcpy(out.name, d.name.data(), std::min(d.name.size(), sizeof out.name - 1));
  for_each_number(out, d, [](auto& c, const auto& cpp) { c = cpp; });
  return out;
}

hmmjit::Device to_cpp(const hmmjit_device& d) {
  hmmjit::Device out;
  out.name.assign(d.name, ::strnlen(d.name, sizeof d.name));
  for_each_number(d, out, [](const auto& c, auto& cpp) { cpp = c; });
  return out;
}

}  // namespace hmmjit::c_interface

extern "C" {

// ---- status, errors, version -------------------------------------------------------------------

const char* hmmjit_status_name(int32_t status) {
  return status == HMMJIT_OK ? "ok" : hmmjit::error_code_name(static_cast<ErrorCode>(status));
}
int32_t hmmjit_error_status(const hmmjit_error* error) {
  return error != nullptr ? static_cast<int32_t>(error->value.code()) : HMMJIT_OK;
}
const char* hmmjit_error_text(const hmmjit_error* error) {
  return error != nullptr ? error->value.what() : "";
}
const char* hmmjit_error_message(const hmmjit_error* error) {
  return error != nullptr ? error->value.message().c_str() : "";
}
const char* hmmjit_error_where(const hmmjit_error* error) {
  return error != nullptr ? error->value.where().c_str() : "";
}
const char* hmmjit_error_remedy(const hmmjit_error* error) {
  return error != nullptr ? error->value.remedy().c_str() : "";
}
void hmmjit_error_free(hmmjit_error* error) { delete error; }

int32_t hmmjit_version_number(void) {
  const hmmjit::Version v = hmmjit::version();
  return v.major * 10000 + v.minor * 100 + v.patch;
}
const char* hmmjit_version(void) { return hmmjit::version().text; }

const char* hmmjit_text_data(const hmmjit_text* text) {
  return text != nullptr ? text->value.c_str() : "";
}
size_t hmmjit_text_size(const hmmjit_text* text) {
  return text != nullptr ? text->value.size() : 0;
}
void hmmjit_text_free(hmmjit_text* text) { delete text; }

// ---- devices -----------------------------------------------------------------------------------

int32_t hmmjit_device_count(int32_t* count, hmmjit_text** note, hmmjit_error** error) {
  return run(error, [&] {
    required(count, "count");
    const hmmjit::DriverInfo info = hmmjit::driver_info();
    const auto devices = info.ready ? hmmjit::devices().size() : 0;
    if (note != nullptr) give(note, info.message);
    *count = static_cast<int32_t>(devices);
  });
}
int32_t hmmjit_device_get(int32_t ordinal, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] {
    const auto devices = hmmjit::devices();
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
      throw Error(ErrorCode::kNoDevice, "no GPU " + std::to_string(ordinal) + " on this machine",
                  {}, hmmjit::driver_info().message);
    }
    write(device, to_c(devices[static_cast<size_t>(ordinal)]));
  });
}
int32_t hmmjit_device_find(const char* name, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] { write(device, to_c(hmmjit::find_device(&required(name, "name")))); });
}
int32_t hmmjit_compiler_version(int32_t* major, int32_t* minor, hmmjit_text** note,
                                hmmjit_error** error) {
  return run(error, [&] {
    required(major, "major");
    required(minor, "minor");
    const hmmjit::CompilerInfo info = hmmjit::compiler_info();
    if (note != nullptr) give(note, info.found ? info.path : info.message);
    *major = info.found ? info.major : 0;
    *minor = info.found ? info.minor : 0;
  });
}

}  // extern "C"
