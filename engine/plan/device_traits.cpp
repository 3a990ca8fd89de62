#include "plan/device_traits.hpp"

#include <fmt/ranges.h>

#include <ranges>

#include "core/ascii.hpp"
#include "core/numbers.hpp"

namespace hmmjit::plan {
namespace {

/// Device names are compared without case, blanks, '-' and '_'.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    out += ascii_lower(c);
  }
  return out;
}

/// "sm_90", "sm90" or "compute_90", with or without the suffix of an architecture-specific target.
struct Architecture {
  int capability = -1;  ///< -1: not an architecture
  char suffix = '\0';
};

Architecture architecture_of(std::string_view folded_name) {
  for (const std::string_view prefix : {"sm", "compute"}) {
    if (!folded_name.starts_with(prefix)) continue;
    Architecture out;
    std::string_view digits = folded_name.substr(prefix.size());
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
      out.suffix = digits.back();
      digits.remove_suffix(1);
    }
    const auto value = parse_int(digits);
    if (value && *value >= 10 && *value < 1000) out.capability = static_cast<int>(*value);
    return out;
  }
  return {};
}

// For an architecture without a device in the table: the limits of the nearest older device. The
// name says that they are assumed.
std::optional<DeviceTraits> assumed_device(int capability) {
  const DeviceTraits* nearest = nullptr;
  for (const DeviceTraits& device : device_table()) {
    if (device.capability() > capability || compiler_gap(device)) continue;
    if (nearest == nullptr || device.capability() > nearest->capability()) nearest = &device;
  }
  if (nearest == nullptr) return std::nullopt;
  DeviceTraits out = *nearest;
  out.name = fmt::format("sm_{}, assumed to be like {}", capability, nearest->name);
  out.major = capability / 10;
  out.minor = capability % 10;
  return out;
}

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Result<DeviceTraits> find_device(std::string_view name) {
  const std::string wanted = folded(name);
  for (const DeviceTraits& device : device_table()) {
    if (folded(device.name) == wanted) return device;
  }
  const Architecture architecture = architecture_of(wanted);
  if (architecture.capability > 0 && architecture.suffix != '\0') {
    return fail(ErrorCode::kUsage,
                fmt::format("\"{}\" is a target for features of one architecture alone", name), {},
                fmt::format("kernels use none of them: give sm_{}", architecture.capability));
  }
  for (const DeviceTraits& device : device_table()) {
    if (device.capability() == architecture.capability) return device;
  }
  if (architecture.capability > 0) {
    if (auto device = assumed_device(architecture.capability)) return std::move(*device);
    return fail(ErrorCode::kUsage, *compiler_gap({.name = std::string(name),
                                                  .major = architecture.capability / 10,
                                                  .minor = architecture.capability % 10}));
  }
  const auto names = device_table() | std::views::transform(&DeviceTraits::name);
  return fail(
      ErrorCode::kUsage, fmt::format("unknown device \"{}\"", name), {},
      fmt::format("known devices: {}; or an architecture such as sm_90", fmt::join(names, ", ")));
}

std::optional<std::string> compiler_gap(const DeviceTraits& device) {
  // Lanes of older devices cannot meet in __syncwarp() while they diverge, and CUDA 12 has no
  // compiler for 3.x.
  if (device.capability() >= 70) return std::nullopt;
  return fmt::format(
      "{} has compute capability {}.{}: kernels need 7.0 (with NVRTC 12) or 7.5 (with NVRTC 13)",
      device.name, device.major, device.minor);
}

Occupancy occupancy(const DeviceTraits& device, int block_threads, int registers,
                    std::int64_t shared_bytes) {
  constexpr int kRegistersPerWarpUnit = 256;  // allocation unit, capability 3.0 and newer
  constexpr int kSharedUnit = 128;
  constexpr int kSubPartitions = 4;  // warps are distributed over four register files

  Occupancy out;
  if (block_threads <= 0 || block_threads > 1024) {
    out.limiter = "threads";
    return out;
  }
  const int warps = (block_threads + 31) / 32;

  int blocks = device.max_threads_per_sm / (warps * 32);
  out.limiter = "threads";
  const auto limit = [&](int allowed, std::string_view resource) {
    if (allowed < blocks) {
      blocks = allowed;
      out.limiter = resource;
    }
  };
  limit(device.max_blocks_per_sm, "blocks");
  if (registers > device.max_registers_per_thread) {
    limit(0, "registers");
  } else if (registers > 0) {
    const int per_warp = round_up(registers * 32, kRegistersPerWarpUnit);
    const int per_partition = device.registers_per_sm / kSubPartitions / per_warp;
    limit(per_partition * kSubPartitions / warps, "registers");
  }
  if (shared_bytes > device.shared_per_block_limit) {
    limit(0, "shared memory");
  } else {
    const int per_block =
        round_up(static_cast<int>(shared_bytes) + device.shared_reserved_per_block, kSharedUnit);
    if (per_block > 0) limit(device.shared_per_sm / per_block, "shared memory");
  }
  out.blocks_per_sm = blocks;
  out.warps_per_sm = blocks * warps;
  out.fraction = static_cast<double>(out.warps_per_sm) / device.max_warps_per_sm();
  return out;
}

}  // namespace hmmjit::plan
