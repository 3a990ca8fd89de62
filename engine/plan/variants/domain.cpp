// Catalogues of the parser, ensemble and envelope stages: what is behind the Forward filter. See
// plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {
namespace {

namespace four_lane {

constexpr std::array<std::string_view, 2> kReferences{
    "Farrar 2007 (striping)", "Eddy 2011 (parsers, posterior decoding, regions, sampled traces)"};
constexpr int kWarp = 32;
constexpr std::int64_t kGroups = 8;  // targets of a warp
// Warps have nothing to do with each other, yet they share blocks: of as many SMs as there were
// blocks of one warp they would keep SSV, whose blocks need a whole one.
constexpr std::int64_t kMostWarps = 8;

int stripes(int length) { return std::max(2, (length + 3) / 4); }

/// Floats, rounded up so that the groups of a warp lie in different banks.
std::int64_t spread(std::int64_t floats) { return (floats + kWarp - 1) / kWarp * kWarp + 4; }

/// Bytes of shared memory of one warp: cells, odds, bounds, emission odds; the envelope kernel also
/// sums posteriors, where the emission odds were, and has a row of products wait.
std::int64_t warp_bytes(Stage stage, std::int64_t count) {
  const std::int64_t stripes = (4 * count + 2) * kWarp, emissions = kGroups * spread(4 * count);
  const std::int64_t floats =
      stage == Stage::kEnvelope
          ? stripes + std::max(2 * kWarp * count, emissions) + kGroups * spread(8 * count)
          : stripes + emissions;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t warps(const ModelShape& shape, const DeviceTraits& device) {
  return std::min(kMostWarps,
                  device.shared_per_block_limit / warp_bytes(shape.stage, stripes(shape.length)));
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (warps(shape, device) > 0) return Verdict::accept();
  return Verdict::reject(
      fmt::format("rows of {} positions are more than the shared memory of one block; the CPU's "
                  "domain stage takes such a model",
                  shape.length));
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  return {{{"kStripes", stripes(shape.length)}, {"kWarps", warps(shape, device)}}};
}

LaunchShape launch_shape(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  return {.block_threads = static_cast<int>(kWarp * c.at("kWarps")),
          .dynamic_shared_bytes = c.at("kWarps") * warp_bytes(shape.stage, c.at("kStripes"))};
}

// Chains of dependent sums and products rule: about 60 clocks a stripe and row. The parser has two
// passes over the rows, the envelope kernel three; the ensemble kernel, with one target a warp, has
// one, and then takes about a microsecond for each step of a trace that could not be foreseen.
Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  const double clocks = shape.stage == Stage::kParser     ? 120
                        : shape.stage == Stage::kEnvelope ? 200
                                                          : 60 * kGroups;
  return {.registers = 224,
          .covered_length = static_cast<int>(4 * c.at("kStripes")),
          .cells_per_clock_per_sm = kWarp * static_cast<double>(c.at("kWarps")) / clocks,
          .binding_resource = "latency of dependent sums"};
}

constexpr std::array<std::string_view, 2> kOptions{"--ftz=true", "--fmad=false"};

constexpr KernelVariant variant(Stage stage, std::string_view file, std::string_view entry,
                                std::string_view summary) {
  return {.name = "four_lane",
          .stage = stage,
          .template_file = file,
          .entry_name = entry,
          .cell = CellType::kFloat,
          .accepts = accepts,
          .constants = constants,
          .launch_shape = launch_shape,
          .expected = expected,
          .references = kReferences,
          .summary = summary,
          .compile_options = kOptions};
}

}  // namespace four_lane

const std::array kParsers{four_lane::variant(
    Stage::kParser, "parser/four_lane.cu", "parser_four_lane",
    "Forward, Backward, decoding and regions of whole targets in the reference's float order")};
const std::array kEnsembles{four_lane::variant(
    Stage::kEnsemble, "ensemble/four_lane.cu", "ensemble_four_lane",
    "sampled traces of regions of several domains, 32 choices at a time, and their clusters")};
const std::array kEnvelopes{four_lane::variant(
    Stage::kEnvelope, "envelope/four_lane.cu", "envelope_four_lane",
    "Forward, Backward, null2 and optimal accuracy path of envelopes, in the same order")};

}  // namespace

std::span<const KernelVariant> parser_variants() { return kParsers; }
std::span<const KernelVariant> ensemble_variants() { return kEnsembles; }
std::span<const KernelVariant> envelope_variants() { return kEnvelopes; }

}  // namespace hmmjit::plan
