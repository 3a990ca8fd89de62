#include "lockstep/registry.hpp"

#include "lockstep/lockstep.hpp"

namespace hmmjit_lockstep {

std::vector<KernelInstance>& kernel_instances() {
  static std::vector<KernelInstance> instances;
  return instances;
}

Registration::Registration(const char* name, const char* kernel, const Constant* constants,
                           std::size_t count, void (*run)(const void*)) {
  KernelInstance instance{name, kernel, {}, run};
  for (std::size_t i = 0; i < count; ++i)
    instance.constants[constants[i].name] = constants[i].value;
  kernel_instances().push_back(std::move(instance));
}

}  // namespace hmmjit_lockstep
