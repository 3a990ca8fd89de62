#include "lockstep/catalogue.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "plan/plan.hpp"

namespace hmmjit_lockstep {
namespace {

namespace plan = hmmjit::plan;

// True if the instance has the constants that distinguish an entry from others of the same kernel.
bool has_form(const plan::KernelVariant& entry, const KernelInstance& instance) {
  const plan::DeviceTraits device = *plan::find_device("H200");
  for (const int length : {1, 30, 100, 400, 1000, 3000}) {
    const plan::ModelShape shape{.stage = entry.stage, .length = length, .alphabet_codes = 29};
    if (!entry.accepts(shape, device).accepted) continue;
    for (const plan::Constants& offered : entry.constants(shape, device)) {
      const auto same = [&](const char* name) {
        const auto value = offered.find(name);
        return !value || (instance.constants.contains(name) && instance.at(name) == *value);
      };
      if (same("kS") && same("kRows") && same("kStatic") && same("kTiled") && same("kScan") &&
          same("kSpeculate"))
        return true;
    }
  }
  return false;
}

const plan::KernelVariant& entry_of(const KernelInstance& instance) {
  const plan::KernelVariant* first = nullptr;
  for (int i = 0; i < plan::kStages; ++i) {
    for (const plan::KernelVariant& v : plan::variants_of(static_cast<plan::Stage>(i))) {
      if (v.entry_name != instance.kernel) continue;
      if (has_form(v, instance)) return v;
      if (first == nullptr) first = &v;
    }
  }
  if (first != nullptr) return *first;
  throw std::logic_error("no catalogue entry has the kernel " + instance.kernel);
}

plan::Constants constants_of(const KernelInstance& instance) {
  plan::Constants out;
  for (const auto& [name, value] : instance.constants) out.add(name, value);
  return out;
}

// The longest model that the instance takes. Only the striped designs depend on it: their Q may be
// a capacity, of which a launch uses what the model needs.
plan::ModelShape shape_of(const KernelInstance& instance) {
  const plan::KernelVariant& entry = entry_of(instance);
  plan::ModelShape shape{.stage = entry.stage, .length = 1, .alphabet_codes = 29};
  if (instance.constants.contains("kQ")) {
    const int cells =
        entry.expected(shape, constants_of(instance), *plan::find_device("H200")).covered_length;
    shape.length = cells * static_cast<int>(instance.at("kQ"));
  }
  return shape;
}

// Planned once: searches of tests launch an instance thousands of times.
const plan::Expected& planned(const KernelInstance& instance) {
  static std::mutex mutex;
  static std::map<std::string, plan::Expected> known;
  const std::lock_guard guard(mutex);
  const auto [at, added] = known.try_emplace(instance.name);
  if (added)
    at->second = entry_of(instance).expected(shape_of(instance), constants_of(instance),
                                             *plan::find_device("H200"));
  return at->second;
}

}  // namespace

int covered_by_entry(const KernelInstance& instance) { return planned(instance).covered_length; }

unsigned threads_by_entry(const KernelInstance& instance) {
  return static_cast<unsigned>(planned(instance).launch.block_threads);
}

std::size_t shared_bytes_by_entry(const KernelInstance& instance) {
  return static_cast<std::size_t>(planned(instance).launch.dynamic_shared_bytes);
}

ScratchNeeds scratch_by_entry(const KernelInstance& instance) {
  const plan::Expected& expected = planned(instance);
  return {static_cast<std::size_t>(expected.scratch_per_warp),
          static_cast<std::size_t>(expected.scratch_per_residue)};
}

bool speculates_by_entry(const KernelInstance& instance) { return entry_of(instance).speculates; }

int tile_length_by_entry(const KernelInstance& instance) { return planned(instance).tile_length; }

std::uint32_t tiles_by_entry(const KernelInstance& instance, int model_length) {
  plan::Candidate candidate;
  candidate.expected = planned(instance);
  return static_cast<std::uint32_t>(plan::tiles_of(candidate, model_length));
}

std::vector<std::string> variants_without_instance(std::initializer_list<plan::Stage> stages) {
  std::vector<std::string> out;
  for (const plan::Stage stage : stages) {
    for (const plan::KernelVariant& v : plan::variants_of(stage)) {
      const auto compiled = [&](const KernelInstance& k) {
        return k.kernel == v.entry_name && has_form(v, k);
      };
      if (std::ranges::none_of(kernel_instances(), compiled)) out.emplace_back(v.name);
    }
  }
  return out;
}

}  // namespace hmmjit_lockstep
