// Catalogue of the bias stage: see plan/kernel_variant.hpp for how to add an entry.
#include <array>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {
namespace {

namespace segments {

constexpr std::array<std::string_view, 1> kReferences{"Blelloch 1990 (prefix sums)"};
constexpr int kWarp = 32;
constexpr int kThreads = 128;

Verdict accepts(const ModelShape&, const DeviceTraits&) { return Verdict::accept(); }

// Eight lanes per target: a long target then takes only an eighth of the time.
std::vector<Constants> constants(const ModelShape&, const DeviceTraits&) {
  std::vector<Constants> out;
  for (const int lanes : {8, 32}) {
    out.push_back({{"kS", kWarp / lanes}, {"kL", lanes}, {"kThreads", kThreads}});
  }
  return out;
}

// A cell is a residue here and takes about 28 instructions, independent of the model's length.
Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  constexpr std::int64_t kOddsBytes = 2 * 32 * sizeof(float);
  return {.launch = {static_cast<int>(c.at("kThreads")), kOddsBytes},
          .registers = 64,
          .covered_length = shape.length,
          .any_length = true,
          .cells_per_clock_per_sm = 128.0 / 28 * shape.length * (c.at("kL") == 8 ? 1.0 : 0.8),
          .binding_resource = "issue"};
}

}  // namespace segments

const std::array kVariants{
    KernelVariant{.name = "segments",
                  .stage = Stage::kBias,
                  .template_file = "bias/segments.cu",
                  .entry_name = "bias_segments",
                  .cell = CellType::kFloat,
                  .accepts = segments::accepts,
                  .constants = segments::constants,
                  .expected = segments::expected,
                  .references = segments::kReferences,
                  .summary = "S targets per warp, products of 2 x 2 matrices over stretches"},
};

}  // namespace

std::span<const KernelVariant> bias_variants() { return kVariants; }

}  // namespace hmmjit::plan
