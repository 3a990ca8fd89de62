// Catalogue of the gate: the thresholds after the bias filter, Viterbi and Forward. See
// plan/kernel_variant.hpp for how to add an entry.
#include <array>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {
namespace {

namespace cascade {

constexpr std::array<std::string_view, 1> kReferences{"Eddy 2011 (the filters' P-values)"};
constexpr int kThreads = 128;

Verdict accepts(const ModelShape&, const DeviceTraits&) { return Verdict::accept(); }

std::vector<Constants> constants(const ModelShape&, const DeviceTraits&) {
  return {{{"kThreads", kThreads}}};
}

// No cells; one decision per target, limited by the latency of a few loads.
Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  return {.launch = {static_cast<int>(c.at("kThreads"))},
          .registers = 128,
          .covered_length = shape.length,
          .any_length = true,
          .cells_per_clock_per_sm = static_cast<double>(shape.length),
          .binding_resource = "load latency"};
}

}  // namespace cascade

const std::array kVariants{
    KernelVariant{.name = "cascade",
                  .stage = Stage::kGate,
                  .template_file = "gate/cascade.cu",
                  .entry_name = "gate_cascade",
                  .cell = CellType::kFloat,
                  .accepts = cascade::accepts,
                  .constants = cascade::constants,
                  .expected = cascade::expected,
                  .references = cascade::kReferences,
                  .summary = "a thread per target, thresholds as bands of scores, compaction"},
};

}  // namespace

std::span<const KernelVariant> gate_variants() { return kVariants; }

}  // namespace hmmjit::plan
