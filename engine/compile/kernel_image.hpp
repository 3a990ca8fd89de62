// A compiled kernel: bytes to load, and the resources they need.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compile/target.hpp"
#include "core/error.hpp"
#include "plan/plan.hpp"

namespace hmmjit::compile {

/// Resources of one kernel, per thread or block. -1: unknown. Source: for a cubin the compiler's
/// log; for PTX, and for the launch bound, the driver.
struct KernelResources {
  int registers = -1;
  int local_bytes = -1;  ///< stack frame per thread: spills, and arrays not in registers
  int spill_bytes = -1;  ///< spill stores, from the compiler's log
  int static_shared_bytes = -1;
  int max_threads = -1;  ///< launch bound
  bool operator==(const KernelResources&) const = default;
};

/// Size of a kernel's parameters in bytes, from its cubin (ELF); nullopt if unknown. Never reads
/// outside `image`.
std::optional<int> read_parameter_bytes(std::string_view image, std::string_view entry_name);

/// A kernel's resources, as far as the log of `--ptxas-options=-v` states them.
KernelResources read_ptxas_log(std::string_view log, std::string_view entry_name);

struct KernelImage {
  ImageKind kind = ImageKind::kCubin;
  std::string architecture;
  std::string entry_name;
  std::string bytes;
  KernelResources resources;
  std::string log;
};

/// Compares a compiled image with the promises of its catalogue entry. Returns the reason for
/// rejection (spills, too many registers, does not fit an SM), or nullopt.
std::optional<std::string> gate(const KernelResources& resources, const plan::Candidate& candidate,
                                const plan::DeviceTraits& device);

/// Converts resources to cache attributes and back.
std::map<std::string, std::string> to_attributes(const KernelResources& resources);
KernelResources from_attributes(const std::map<std::string, std::string>& attributes);

}  // namespace hmmjit::compile
