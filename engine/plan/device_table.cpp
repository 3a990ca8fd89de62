// Built-in device traits. Limits per compute capability: CUDA C++ Programming Guide, "Compute
// Capabilities"; SM counts, boost clocks, memory: the vendor's data sheets of each board.
#include <algorithm>
#include <array>

#include "plan/device_traits.hpp"

namespace hmmjit::plan {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

/// The limits common to all devices of one compute capability.
struct Limits {
  int capability, threads_per_sm, blocks_per_sm, shared_kib;
};
constexpr std::array kLimits{Limits{35, 2048, 16, 48},   Limits{70, 2048, 32, 96},
                             Limits{75, 1024, 16, 64},   Limits{80, 2048, 32, 164},
                             Limits{86, 1536, 16, 100},  Limits{89, 1536, 24, 100},
                             Limits{90, 2048, 32, 228},  Limits{100, 2048, 32, 228},
                             Limits{110, 1536, 24, 228}, Limits{120, 1536, 24, 100}};

DeviceTraits device(const char* name, int major, int minor, int sm_count, int boost_mhz,
                    std::int64_t memory_gib, double bandwidth_gb_per_s, std::int64_t l2_kib) {
  DeviceTraits t;
  t.name = name;
  t.major = major;
  t.minor = minor;
  const Limits& limits = *std::ranges::find(kLimits, t.capability(), &Limits::capability);
  t.max_threads_per_sm = limits.threads_per_sm;
  t.max_blocks_per_sm = limits.blocks_per_sm;
  t.shared_reserved_per_block = t.capability() < 80 ? 0 : 1024;
  t.shared_per_sm = limits.shared_kib * 1024;
  t.shared_per_block_limit = t.shared_per_sm - t.shared_reserved_per_block;
  t.sm_count = sm_count;
  t.clock_khz = boost_mhz * 1000;
  t.memory_bytes = memory_gib * kGiB;
  t.memory_bandwidth = bandwidth_gb_per_s * 1e9;
  t.l2_bytes = l2_kib * kKiB;
  return t;
}

}  // namespace

std::span<const DeviceTraits> device_table() {
  static const std::array table{
      device("K40", 3, 5, 15, 875, 12, 288, 1536),
      device("V100", 7, 0, 80, 1530, 32, 900, 6144),
      device("T4", 7, 5, 40, 1590, 16, 320, 4096),
      device("A100", 8, 0, 108, 1410, 80, 2039, 40960),
      device("A10", 8, 6, 72, 1695, 24, 600, 6144),
      device("RTX 3090", 8, 6, 82, 1695, 24, 936, 6144),
      device("L4", 8, 9, 58, 2040, 24, 300, 49152),
      device("L40S", 8, 9, 142, 2520, 48, 864, 98304),
      device("RTX 4090", 8, 9, 128, 2520, 24, 1008, 73728),
      device("H100", 9, 0, 132, 1980, 80, 3350, 51200),
      device("H200", 9, 0, 132, 1980, 141, 4800, 51200),
      device("GH200", 9, 0, 132, 1980, 96, 4000, 51200),
      device("B200", 10, 0, 148, 1965, 180, 8000, 129024),
      device("Jetson Thor", 11, 0, 20, 1575, 128, 273, 32768),
      device("RTX 5090", 12, 0, 170, 2407, 32, 1792, 98304),
  };
  return table;
}

}  // namespace hmmjit::plan
