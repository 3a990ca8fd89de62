#include "lockstep/catalogue.hpp"

#include <algorithm>
#include <stdexcept>

namespace hmmjit_lockstep {
namespace {

namespace plan = hmmjit::plan;

const plan::KernelVariant& entry_of(const KernelInstance& instance) {
  for (int i = 0; i < plan::kStages; ++i) {
    for (const plan::KernelVariant& v : plan::variants_of(static_cast<plan::Stage>(i))) {
      if (v.entry_name == instance.kernel) return v;
    }
  }
  throw std::logic_error("no catalogue entry has the kernel " + instance.kernel);
}

plan::Constants constants_of(const KernelInstance& instance) {
  plan::Constants out;
  for (const auto& [name, value] : instance.constants) out.add(name, value);
  return out;
}

plan::ModelShape shape_of(const plan::KernelVariant& entry) {
  return {.stage = entry.stage, .length = 1, .alphabet_codes = 29};
}

}  // namespace

int covered_by_entry(const KernelInstance& instance) {
  const plan::KernelVariant& entry = entry_of(instance);
  return entry.expected(shape_of(entry), constants_of(instance), *plan::find_device("H200"))
      .covered_length;
}

int tile_length_by_entry(const KernelInstance& instance) {
  const plan::KernelVariant& entry = entry_of(instance);
  return entry.expected(shape_of(entry), constants_of(instance), *plan::find_device("H200"))
      .tile_length;
}

std::size_t shared_bytes_by_entry(const KernelInstance& instance) {
  const plan::KernelVariant& entry = entry_of(instance);
  return static_cast<std::size_t>(
      entry.launch_shape(shape_of(entry), constants_of(instance), *plan::find_device("H200"))
          .dynamic_shared_bytes);
}

std::vector<std::string> kernels_without_instance(std::initializer_list<plan::Stage> stages) {
  std::vector<std::string> out;
  for (const plan::Stage stage : stages) {
    for (const plan::KernelVariant& v : plan::variants_of(stage)) {
      const auto compiled = [&](const KernelInstance& k) { return k.kernel == v.entry_name; };
      if (std::ranges::none_of(kernel_instances(), compiled) &&
          std::ranges::find(out, v.entry_name) == out.end()) {
        out.emplace_back(v.entry_name);
      }
    }
  }
  return out;
}

}  // namespace hmmjit_lockstep
