// The kernel instances of a lockstep test program: a template with one list of constants each,
// registered by the generated translation units (see CMakeLists.txt here).
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

struct Registration {
  explicit Registration(KernelInstance instance) {
    kernel_instances().push_back(std::move(instance));
  }
};

}  // namespace hmmjit_lockstep
