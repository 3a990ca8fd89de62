// What the planner knows about a device: plain data, read from a driver or taken from the built-in
// table, so that planning never needs a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::plan {

/// Limits and rates of one CUDA device. Sizes are in bytes, the clock in kHz. Immutable value.
/// Source of the table's figures: CUDA C++ Programming Guide, technical specifications per compute
/// capability, and the vendor's data sheets (boost clock).
struct DeviceTraits {
  std::string name;          ///< "H200"; the driver's name if live
  int major = 0, minor = 0;  ///< compute capability
  int sm_count = 0;
  int clock_khz = 0;  ///< boost clock
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;
  int shared_per_sm = 0;              ///< total per SM
  int shared_per_block_limit = 0;     ///< largest (opt-in) size per block
  int shared_reserved_per_block = 0;  ///< taken by the system from each block
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  double memory_bandwidth = 0;  ///< bytes per second
  bool live = false;            ///< read from a driver, not from the table

  int capability() const { return major * 10 + minor; }
  int max_warps_per_sm() const { return max_threads_per_sm / 32; }
  /// True if packed 16-bit add-max (DPX) is done in hardware; elsewhere the compiler emulates it.
  bool has_dpx() const { return capability() >= 90; }
  bool operator==(const DeviceTraits&) const = default;
};

/// The built-in table, oldest architecture first. Includes devices that no supported compiler can
/// target (see compiler_gap), so that plans for them can state the reason.
std::span<const DeviceTraits> device_table();

/// Finds a device by name ("H200", "RTX 4090"; case, blanks, '-' and '_' are ignored) or
/// architecture ("sm_90": the table's first device of that capability or, if there is none, the
/// limits of the nearest older device, with a name that says so). Fails with kUsage and the list of
/// names, also for "sm_90a" and the like.
Result<DeviceTraits> find_device(std::string_view name);

/// Why there are no kernels for the device with any supported run-time compiler (NVRTC 12, 13);
/// empty if there are.
std::optional<std::string> compiler_gap(const DeviceTraits& device);

/// Resident blocks per SM for a kernel's resources, and the resource that limits them.
struct Occupancy {
  int blocks_per_sm = 0;
  int warps_per_sm = 0;
  double fraction = 0;       ///< warps_per_sm divided by the device's maximum
  std::string_view limiter;  ///< "registers", "shared memory", "threads", "blocks"
};
/// `registers` per thread; `shared_bytes` per block, static plus dynamic. Allocation granularity as
/// in the vendor's occupancy calculator: registers by 256 per warp, shared memory by 128 bytes.
Occupancy occupancy(const DeviceTraits& device, int block_threads, int registers,
                    std::int64_t shared_bytes);

}  // namespace hmmjit::plan
