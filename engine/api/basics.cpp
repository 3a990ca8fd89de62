// Errors, versions, devices, compiler.
#include "api/convert.hpp"
#include "cache/entry_format.hpp"
#include "compile/nvrtc_library.hpp"
#include "driver/driver.hpp"
#include "hmmjit/version.hpp"

namespace hmmjit::v0 {

struct Error::Text {
  hmmjit::Error parts;
  std::string line;
};

Error::Error(ErrorCode code, std::string message, std::string where, std::string remedy) {
  auto text = std::make_shared<Text>();
  text->parts = {static_cast<hmmjit::ErrorCode>(code), std::move(message), std::move(where),
                 std::move(remedy)};
  text->line = text->parts.to_string();
  text_ = std::move(text);
}
Error::~Error() = default;
Error::Error(const Error&) noexcept = default;
Error& Error::operator=(const Error&) noexcept = default;
const char* Error::what() const noexcept { return text_->line.c_str(); }
ErrorCode Error::code() const noexcept { return static_cast<ErrorCode>(text_->parts.code); }
const std::string& Error::message() const noexcept { return text_->parts.message; }
const std::string& Error::where() const noexcept { return text_->parts.where; }
const std::string& Error::remedy() const noexcept { return text_->parts.remedy; }

namespace {
const Error kOutOfMemory(ErrorCode::kResources, "out of memory");
}  // namespace
const Error& out_of_memory() noexcept { return kOutOfMemory; }

const char* error_code_name(ErrorCode code) noexcept {
  return hmmjit::error_code_name(static_cast<hmmjit::ErrorCode>(code));
}

Version version() noexcept {
  return {HMMJIT_VERSION_MAJOR, HMMJIT_VERSION_MINOR, HMMJIT_VERSION_PATCH, HMMJIT_VERSION,
          static_cast<int>(cache::kEntryFormatVersion)};
}

Device to_device(const plan::DeviceTraits& t, int ordinal) {
  Device d;
  d.name = t.name;
  d.ordinal = ordinal;
  d.major = t.major;
  d.minor = t.minor;
  d.sm_count = t.sm_count;
  d.clock_khz = t.clock_khz;
  d.max_threads_per_sm = t.max_threads_per_sm;
  d.max_blocks_per_sm = t.max_blocks_per_sm;
  d.registers_per_sm = t.registers_per_sm;
  d.max_registers_per_thread = t.max_registers_per_thread;
  d.shared_per_sm = t.shared_per_sm;
  d.shared_per_block = t.shared_per_block_limit;
  d.shared_reserved_per_block = t.shared_reserved_per_block;
  d.memory_bytes = t.memory_bytes;
  d.l2_bytes = t.l2_bytes;
  d.memory_bandwidth = t.memory_bandwidth;
  return d;
}

plan::DeviceTraits to_traits(const Device& d) {
  plan::DeviceTraits t;
  t.name = d.name;
  t.major = d.major;
  t.minor = d.minor;
  t.sm_count = d.sm_count;
  t.clock_khz = d.clock_khz;
  t.max_threads_per_sm = d.max_threads_per_sm;
  t.max_blocks_per_sm = d.max_blocks_per_sm;
  t.registers_per_sm = d.registers_per_sm;
  t.max_registers_per_thread = d.max_registers_per_thread;
  t.shared_per_sm = d.shared_per_sm;
  t.shared_per_block_limit = d.shared_per_block;
  t.shared_reserved_per_block = d.shared_reserved_per_block;
  t.memory_bytes = d.memory_bytes;
  t.l2_bytes = d.l2_bytes;
  t.memory_bandwidth = d.memory_bandwidth;
  t.live = d.ordinal >= 0;
  return t;
}

DriverInfo driver_info() {
  return guarded([] {
    const auto driver = driver::Driver::open();
    const driver::DriverReport& report = driver->report();
    return DriverInfo{driver->ready(), report.version, report.path, report.message, report.remedy};
  });
}

CompilerInfo compiler_info() {
  return guarded([] {
    CompilerInfo out;
    const auto compiler = compile::NvrtcLibrary::locate();
    if (!compiler) {
      out.message = compiler.error().to_string();
      return out;
    }
    out.major = (*compiler)->major();
    out.minor = (*compiler)->minor();
    out.path = (*compiler)->path();
    auto architectures = (*compiler)->architectures();
    if (!architectures) {
      out.message = architectures.error().to_string();
      return out;
    }
    out.found = true;
    out.architectures = *std::move(architectures);
    return out;
  });
}

std::vector<Device> devices() {
  return guarded([] {
    std::vector<Device> out;
    const auto driver = driver::Driver::open();
    for (int i = 0; i < driver->device_count(); ++i) {
      out.push_back(to_device(value(driver->traits(i)), i));
    }
    return out;
  });
}

std::vector<Device> device_table() {
  return guarded([] {
    std::vector<Device> out;
    for (const plan::DeviceTraits& traits : plan::device_table()) {
      out.push_back(to_device(traits, -1));
    }
    return out;
  });
}

Device find_device(std::string_view name) {
  return guarded([&] { return to_device(value(plan::find_device(name)), -1); });
}

}  // namespace hmmjit::v0
