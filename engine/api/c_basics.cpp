// The C interface: errors, version, texts, devices.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace hmmjit::c_interface {

hmmjit_device to_c(const hmmjit::Device& device) {
  hmmjit_device out{};
  out.size = sizeof out;
  device.name.copy(out.name, sizeof out.name - 1);
  out.ordinal = device.ordinal;
  out.shared_per_block = device.shared_per_block;
  limits_of(out) = limits_of(device);
  return out;
}

hmmjit::Device to_cpp(const hmmjit_device& device) {
  hmmjit::Device out;
  out.name.assign(device.name, ::strnlen(device.name, sizeof device.name));
  out.ordinal = device.ordinal;
  out.shared_per_block = device.shared_per_block;
  limits_of(out) = limits_of(device);
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
