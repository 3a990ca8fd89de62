#include "lockstep/registry.hpp"

namespace hmmjit_lockstep {

std::vector<KernelInstance>& kernel_instances() {
  static std::vector<KernelInstance> instances;
  return instances;
}

}  // namespace hmmjit_lockstep
