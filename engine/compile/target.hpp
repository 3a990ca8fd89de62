// The target of a compile: cubin or PTX, architecture, options.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/nvrtc_library.hpp"
#include "core/error.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit::compile {

struct Target {
  ImageKind kind = ImageKind::kCubin;
  std::string architecture;  ///< "sm_90" for a cubin, "compute_121" for PTX
  std::string explanation;   ///< normally empty; otherwise why this is not the device's own
};

/// A cubin for the device's architecture if the compiler knows it; else a cubin of the same major
/// and a lower minor version, which the device runs unchanged; else, for a newer device, PTX of the
/// highest known architecture, which the driver compiles. Fails with kCompile if the compiler no
/// longer supports the device.
Result<Target> choose_target(const plan::DeviceTraits& device,
                             std::span<const int> known_architectures,
                             const std::string& compiler_identity);

/// The canonical, ordered options of a compile. `extra` are the variant's own. Rejects options that
/// read or write files or name another architecture (kCompile): the cache key could not cover their
/// effect.
Result<std::vector<std::string>> compile_options(const Target& target, int nvrtc_major,
                                                 int nvrtc_minor,
                                                 std::span<const std::string_view> extra = {});

}  // namespace hmmjit::compile
