// Built-in device traits. Limits per compute capability: CUDA C++ Programming Guide, "Compute
// Capabilities"; SM counts, boost clocks, memory: the vendor's data sheets of each board.
#include <array>

#include "plan/device_traits.hpp"

namespace hmmjit::plan {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

/// The limits common to all devices of one compute capability.
DeviceTraits of_capability(int major, int minor) {
  DeviceTraits t;
  t.major = major;
  t.minor = minor;
  t.max_threads_per_sm = 2048;
  t.max_blocks_per_sm = 32;
  t.shared_reserved_per_block = 1024;
  int shared_kib = 0;
  switch (t.capability()) {
    case 35:
      t.max_blocks_per_sm = 16;
      t.shared_per_sm = t.shared_per_block_limit = 48 * 1024;
      t.shared_reserved_per_block = 0;
      return t;
    case 70:
      t.shared_per_sm = t.shared_per_block_limit = 96 * 1024;
      t.shared_reserved_per_block = 0;
      return t;
    case 75:
      t.max_threads_per_sm = 1024;
      t.max_blocks_per_sm = 16;
      t.shared_per_sm = t.shared_per_block_limit = 64 * 1024;
      t.shared_reserved_per_block = 0;
      return t;
    case 80:
      shared_kib = 164;
      break;
    case 86:
      t.max_threads_per_sm = 1536;
      t.max_blocks_per_sm = 16;
      shared_kib = 100;
      break;
    case 89:
    case 120:
      t.max_threads_per_sm = 1536;
      t.max_blocks_per_sm = 24;
      shared_kib = 100;
      break;
    default:  // 9.0, 10.x
      shared_kib = 228;
  }
  t.shared_per_sm = shared_kib * 1024;
  t.shared_per_block_limit = (shared_kib - 1) * 1024;
  return t;
}

DeviceTraits device(const char* name, int major, int minor, int sm_count, int boost_mhz,
                    std::int64_t memory_gib, double bandwidth_gb_per_s, std::int64_t l2_kib) {
  DeviceTraits t = of_capability(major, minor);
  t.name = name;
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
      device("RTX 5090", 12, 0, 170, 2407, 32, 1792, 98304),
  };
  return table;
}

}  // namespace hmmjit::plan
