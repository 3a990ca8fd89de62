// A compiled kernel: bytes to load, and what they need of a device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compile/target.hpp"
#include "core/error.hpp"
#include "plan/plan.hpp"

namespace hmmjit::compile {

/// Resources of one kernel, per thread or block. -1: unknown. The compiler's log states them for a
/// cubin, the driver for PTX and the launch bound.
struct KernelResources {
  int registers = -1;
  int local_bytes = -1;  ///< stack frame per thread: spills and arrays the compiler could not keep
  int spill_bytes = -1;  ///< stores to local memory that are spills, from the compiler's log
  int static_shared_bytes = -1;
  int max_threads = -1;  ///< launch bound
  bool operator==(const KernelResources&) const = default;
};

/// Bytes of all parameters of a kernel, from its cubin (ELF); nullopt where the image does not
/// state them. Never reads outside `image`.
std::optional<int> read_parameter_bytes(std::string_view image, std::string_view entry_name);

/// The resources of a kernel from the log of `--ptxas-options=-v`, where it has them.
KernelResources read_ptxas_log(std::string_view log, std::string_view entry_name);

struct KernelImage {
  ImageKind kind = ImageKind::kCubin;
  std::string architecture;
  std::string entry_name;
  std::string bytes;
  KernelResources resources;
  std::string log;
};

/// The gate between a compiled image and its use: empty when it keeps what its catalogue entry
/// promised, else the reason it is rejected (spills, too many registers, does not fit an SM).
std::optional<std::string> gate(const KernelResources& resources, const plan::Candidate& candidate,
                                const plan::DeviceTraits& device);

/// Resources as cache attributes and back.
std::map<std::string, std::string> to_attributes(const KernelResources& resources);
KernelResources from_attributes(const std::map<std::string, std::string>& attributes);

}  // namespace hmmjit::compile
