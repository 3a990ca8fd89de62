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
  std::string explanation;   ///< empty normally, otherwise why this is not the device's own
};

/// A cubin for an architecture the compiler knows; a cubin of the same major version and a lower
/// minor one, which the device runs unchanged; PTX of the highest known architecture for a newer
/// device, whose driver finishes the compile. Fails with kCompile for a device older than the
/// compiler.
Result<Target> choose_target(const plan::DeviceTraits& device,
                             std::span<const int> known_architectures,
                             const std::string& compiler_identity);

/// The canonical, ordered options of a compile. `extra` are a variant's own. Options that read or
/// write files or name another architecture are refused (kCompile): the cache key could not hold
/// what they depend on.
Result<std::vector<std::string>> compile_options(const Target& target, int nvrtc_major,
                                                 int nvrtc_minor,
                                                 std::span<const std::string_view> extra = {});

}  // namespace hmmjit::compile
