#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <zlib.h>
#include <zstd.h>

#include <nlohmann/json.hpp>

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

#include "compile/nvrtc_library.hpp"
#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "driver/driver.hpp"
#include "hmmjit/command.hpp"

namespace hmmjit::tools {
namespace {

constexpr const char* kCompiler =
#if defined(__clang__)
    "Clang " __clang_version__;
#elif defined(__GNUC__)
    "GCC " __VERSION__;
#else
    "unknown";
#endif

std::string system_text() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return fmt::format("{} {}, {}", name.sysname, name.release, name.machine);
}

std::string gpu_text(const driver::Driver& driver) {
  if (!driver.ready()) return driver.report().message;
  std::string text = fmt::format("driver {}", driver.report().version);
  for (int ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
    const auto traits = driver.traits(ordinal);
    text += traits ? fmt::format("; {}: {}", ordinal, traits->name)
                   : fmt::format("; {}: {}", ordinal, traits.error().to_string());
  }
  return text;
}

std::string compiler_text() {
  const auto found = compile::NvrtcLibrary::locate();
  if (!found) return "none";
  return fmt::format("NVRTC {}.{} in {}", (*found)->major(), (*found)->minor(), (*found)->path());
}

}  // namespace

std::string version_text() {
  const auto driver = driver::Driver::open();
  std::string text = fmt::format("hmmjit {}\n", HMMJIT_VERSION);
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  line("compiler", kCompiler);
  line("build", HMMJIT_BUILD_TEXT);
  line("libraries",
       fmt::format("fmt {}.{}.{}, zlib {}, zstd {}, nlohmann-json {}.{}.{}", FMT_VERSION / 10000,
                   FMT_VERSION / 100 % 100, FMT_VERSION % 100, ::zlibVersion(),
                   ::ZSTD_versionString(), NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                   NLOHMANN_JSON_VERSION_PATCH));
#if defined(__GLIBC__)
  line("C library", fmt::format("glibc {}", ::gnu_get_libc_version()));
#endif
  line("system", system_text());
  line("cores", fmt::format("{}", available_cores()));
  line("vector instructions", fmt::format("{}", fmt::join(cpu::available_targets(), " ")));
  line("GPU", gpu_text(*driver));
  line("run-time compiler", compiler_text());
  return text;
}

}  // namespace hmmjit::tools
