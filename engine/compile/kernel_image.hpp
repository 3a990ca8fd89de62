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

/// Resources of one kernel, per thread or block. -1: unknown (PTX has none before it is loaded).
struct KernelResources {
  int registers = -1;
  int local_bytes = -1;  ///< stack frame per thread: spills and arrays the compiler could not keep
  int spill_bytes = -1;  ///< stores to local memory that are spills, from the compiler's log
  int static_shared_bytes = -1;
  int max_threads = -1;  ///< launch bound
  bool operator==(const KernelResources&) const = default;
};

/// Reads a cubin (ELF): register count, frame size, static shared memory, launch bound of one
/// kernel. Fails with kCompile on bytes that are not a 64-bit CUDA ELF or lack the kernel; never
/// reads outside `image`.
Result<KernelResources> read_cubin(std::string_view image, std::string_view entry_name);

/// Bytes of the kernel's parameters together, as the cubin states them; nullopt when it does not.
std::optional<int> read_parameter_bytes(std::string_view image, std::string_view entry_name);

/// The resources from the log of `--ptxas-options=-v`, where it has them.
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
