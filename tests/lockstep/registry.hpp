// The kernel instances of a lockstep test program, registered by the generated translation units
// (see CMakeLists.txt here).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hmmjit_lockstep {

struct KernelInstance {
  std::string name;    ///< of this instance
  std::string kernel;  ///< the extern "C" entry of the template
  std::map<std::string, std::int64_t> constants;
  void (*run)(const void* params);  ///< one thread of the kernel; params: its parameter struct
  std::int64_t at(const std::string& constant) const { return constants.at(constant); }
};

std::vector<KernelInstance>& kernel_instances();

}  // namespace hmmjit_lockstep
