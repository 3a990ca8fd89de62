// GPUs: those of this machine, and a table of others for plans.
//
//   for (const hmmjit::Device& gpu : hmmjit::devices()) std::cout << gpu.name << '\n';
//   const hmmjit::Device other = hmmjit::find_device("sm_90");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmmjit/export.hpp"

HMMJIT_BEGIN_NAMESPACE

/// The properties of a CUDA device that determine plans. Plain data. Sizes in bytes, clock in kHz.
/// Source of the table's figures: CUDA C++ Programming Guide, technical specifications per compute
/// capability; vendor's data sheets for clocks and bandwidths.
struct Device {
  std::string name;
  int ordinal = -1;          ///< on this machine; -1: from the table
  int major = 0, minor = 0;  ///< compute capability
  int sm_count = 0;
  int clock_khz = 0;  ///< boost clock
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;
  int shared_per_sm = 0;              ///< shared memory of one SM
  int shared_per_block = 0;           ///< largest (opt-in) shared memory of one block
  int shared_reserved_per_block = 0;  ///< taken by the system from each block
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  double memory_bandwidth = 0;  ///< bytes per second
};

/// State of the CUDA driver of this machine.
struct DriverInfo {
  bool ready = false;   ///< at least one device is usable
  int version = 0;      ///< 12040 for CUDA 12.4; 0: unknown
  std::string path;     ///< of the library
  std::string message;  ///< state of the driver, a sentence
  std::string remedy;   ///< advice, may be empty
};

/// State of the run-time compiler (NVRTC) of this machine.
struct CompilerInfo {
  bool found = false;
  int major = 0, minor = 0;
  std::string path;
  std::vector<int> architectures;  ///< supported, ascending: 75, 80, ...
  std::string message;             ///< the reason if none was found
};

/// Describe driver and compiler without use of a GPU; never throw for their absence. The first call
/// in a process may take a third of a second. Thread-safe.
HMMJIT_EXPORT DriverInfo driver_info();
HMMJIT_EXPORT CompilerInfo compiler_info();

/// The GPUs of this machine, in the driver's order; empty: none. Thread-safe.
HMMJIT_EXPORT std::vector<Device> devices();

/// The built-in table, oldest architecture first. Needs no GPU. Thread-safe.
HMMJIT_EXPORT std::vector<Device> device_table();

/// A device of the table by name ("H200", "RTX 4090"; case, blanks, '-' and '_' do not matter) or
/// architecture ("sm_90"). Throws Error kUsage with the list of names. Thread-safe.
HMMJIT_EXPORT Device find_device(std::string_view name);

HMMJIT_END_NAMESPACE
