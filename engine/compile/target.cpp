#include "compile/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hmmjit::compile {
namespace {

struct VersionedOption {
  std::string_view text;
  int major, minor;  ///< minimum NVRTC
};

// The order is part of the cache key: append only.
constexpr std::array kOptions{
    VersionedOption{"--std=c++17", 12, 0},
    // Writes registers and spills to the log: shows spills without a GPU.
    VersionedOption{"--ptxas-options=-v", 12, 0},
    // Unused variables of a template are normal.
    VersionedOption{"--diag-suppress=177", 12, 0},
    // NVRTC's own disk cache would hide a repeated compile's log and true time.
    VersionedOption{"--no-cache", 12, 9},
};

/// Prefixes of options whose effect depends on files or is not in the key.
constexpr std::array<std::string_view, 21> kRefused{"-I",
                                                    "--include-path",
                                                    "-include",
                                                    "--pre-include",
                                                    "--pch",
                                                    "--use-pch",
                                                    "--create-pch",
                                                    "-pch",
                                                    "-use-pch",
                                                    "-create-pch",
                                                    "-pre-include",
                                                    "-fdevice-time-trace",
                                                    "-arch",
                                                    "--gpu-architecture",
                                                    "-dlto",
                                                    "--dlink-time-opt",
                                                    "-time",
                                                    "--time",
                                                    "--fdevice-time-trace",
                                                    "-optix-ir",
                                                    "--extensible-whole-program"};

}  // namespace

Result<Target> choose_target(const plan::DeviceTraits& device,
                             std::span<const int> known_architectures,
                             const std::string& compiler_identity) {
  const int wanted = device.capability();
  const std::string where = fmt::format("{} (sm_{})", device.name, wanted);
  if (const auto gap = plan::compiler_gap(device)) return fail(ErrorCode::kCompile, *gap, where);
  if (known_architectures.empty()) {
    return fail(ErrorCode::kCompile, "the compiler supports no architecture", compiler_identity);
  }
  if (std::ranges::find(known_architectures, wanted) != known_architectures.end()) {
    return Target{ImageKind::kCubin, fmt::format("sm_{}", wanted), {}};
  }
  const auto [least, most] = std::ranges::minmax(known_architectures);
  if (wanted < least) {
    return fail(ErrorCode::kCompile,
                fmt::format("{} makes kernels for sm_{} and newer", compiler_identity, least),
                where, "install NVRTC 12 and name its folder in HMMJIT_NVRTC_DIR");
  }
  // A cubin runs on devices with the same major and an equal or higher minor version; one for Tegra
  // (Jetson) runs on no other device.
  constexpr std::array kTegra{53, 62, 72, 87, 101};
  int same_major = 0, below = 0;
  for (const int known : known_architectures) {
    if (known > wanted) continue;
    below = std::max(below, known);
    if (known / 10 == device.major && std::ranges::find(kTegra, known) == kTegra.end())
      same_major = std::max(same_major, known);
  }
  if (same_major > 0) {
    return Target{ImageKind::kCubin, fmt::format("sm_{}", same_major),
                  fmt::format("{} does not know sm_{}; a cubin for sm_{} runs on it",
                              compiler_identity, wanted, same_major)};
  }
  return Target{ImageKind::kPtx, fmt::format("compute_{}", below),
                fmt::format("sm_{} is newer than {} (up to sm_{}): PTX for compute_{}, finished by "
                            "the driver at load time",
                            wanted, compiler_identity, most, below)};
}

Result<std::vector<std::string>> compile_options(const Target& target, int nvrtc_major,
                                                 int nvrtc_minor,
                                                 std::span<const std::string_view> extra) {
  std::vector<std::string> out{"--gpu-architecture=" + target.architecture};
  for (const VersionedOption& option : kOptions) {
    if (std::pair(nvrtc_major, nvrtc_minor) >= std::pair(option.major, option.minor)) {
      out.emplace_back(option.text);
    }
  }
  for (const std::string_view option : extra) {
    for (const std::string_view refused : kRefused) {
      if (option.starts_with(refused)) {
        return fail(ErrorCode::kCompile,
                    fmt::format("compiler option \"{}\" cannot be part of a cache key", option),
                    "kernel catalogue",
                    "options that read or write files or change the target are not allowed");
      }
    }
    out.emplace_back(option);
  }
  return out;
}

}  // namespace hmmjit::compile
