// Catalogues of the parser, ensemble and envelope stages, which follow the Forward filter. See
// plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/domain_params.h"
#include "plan/kernel_variant.hpp"
#include "plan/variants/candidates.hpp"

namespace hmmjit::plan {
namespace {

namespace four_warp {
// Predicted cells per clock and SM for a model of this length; 0: the model is too long.
double rate(Stage stage, int length);
}  // namespace four_warp

namespace four_lane {

constexpr std::array<std::string_view, 2> kReferences{
    "Farrar 2007 (striping)", "Eddy 2011 (parsers, posterior decoding, regions, sampled traces)"};
constexpr int kWarp = 32;
// A block takes all shared memory of an SM, and as many of its warps work as the memory can hold.
// So one kernel serves models of all lengths, and in a mixed launch each model gets as many
// concurrent warps as its rows allow. Blocks of one warp would occupy as many SMs and keep out SSV,
// whose blocks need a whole one. One target per warp needs so little memory for its rows that
// registers are the limit.
//
// A row takes a warp the longer of two times, in clocks for all passes, measured on an H100 with
// models of 80 to 1,400 positions: `latency` if operations wait for the previous one and there are
// too few warps to hide that, and `throughput` times the number of warps if these saturate the
// shared-memory pipe, as with short models. In the ensemble stage, with one region per warp, the
// constant part is that of the 200 traces.
struct RowClocks {
  double constant, per_stripe;
  double of(std::uint32_t stripes) const { return constant + per_stripe * stripes; }
};
struct OfStage {
  std::int64_t most_warps;
  int registers;
  RowClocks latency, throughput;
};
constexpr OfStage of(Stage stage) {
  switch (stage) {
    case Stage::kParser:
      return {12, 168, {8400, 280}, {800, 90}};
    case Stage::kEnsemble:
      return {16, 128, {125'000, 1200}, {0, 0}};
    default:
      return {8, 240, {26'000, 710}, {1500, 230}};
  }
}

std::uint32_t stripes(int length) {
  return static_cast<std::uint32_t>(std::max(2, (length + 3) / 4));
}

std::uint32_t warp_floats(Stage stage, std::uint32_t stripes, std::uint32_t targets) {
  return stage == Stage::kParser     ? hmmjit_device::parser_warp_floats(stripes, targets)
         : stage == Stage::kEnsemble ? hmmjit_device::ensemble_warp_floats(stripes, targets)
                                     : hmmjit_device::envelope_warp_floats(stripes, targets);
}

// Number of warps that fit into a block if each has this many targets.
std::int64_t warps(const ModelShape& shape, const DeviceTraits& device, std::int64_t targets) {
  const std::uint32_t Q = stripes(shape.length);
  return hmmjit_device::working_warps(
      static_cast<std::uint32_t>(device.shared_per_block_limit) / sizeof(float), Q,
      warp_floats(shape.stage, Q, static_cast<std::uint32_t>(targets)),
      static_cast<std::uint32_t>(of(shape.stage).most_warps));
}

// Targets per warp: as many as have room for their rows (a row takes as long for one as for all),
// and at least one. In the ensemble stage a warp samples the traces of one region.
std::int64_t targets_of_warp(const ModelShape& shape, const DeviceTraits& device) {
  if (shape.stage == Stage::kEnsemble) return 1;
  std::int64_t targets = hmmjit_device::kMostTargetsPerWarp;
  while (targets > 1 && warps(shape, device, targets) == 0) targets /= 2;
  return targets;
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (warps(shape, device, targets_of_warp(shape, device)) > 0) return Verdict::accept();
  return Verdict::reject(
      fmt::format("rows of {} positions are more than the shared memory of one block; the CPU's "
                  "domain stage takes such a model",
                  shape.length));
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  return {{{"kWarps", of(shape.stage).most_warps}, {"kTargets", targets_of_warp(shape, device)}}};
}

double rate(const ModelShape& shape, const DeviceTraits& device, std::int64_t targets) {
  const std::uint32_t Q = stripes(shape.length);
  const OfStage stage = of(shape.stage);
  const auto side_by_side = static_cast<double>(warps(shape, device, targets));
  return 4.0 * static_cast<double>(targets) * side_by_side * Q /
         std::max(stage.latency.of(Q), side_by_side * stage.throughput.of(Q));
}

Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits& device) {
  const std::int64_t targets = c.at("kTargets");
  // One kernel serves all models for which it is the fastest.
  ModelShape longest = shape;
  for (ModelShape next = shape;; longest = next) {
    next.length += 4;
    if (warps(next, device, targets) == 0 ||
        four_warp::rate(shape.stage, next.length) > rate(next, device, targets))
      break;
  }
  return {.launch = {static_cast<int>(kWarp * c.at("kWarps")), device.shared_per_block_limit},
          .registers = of(shape.stage).registers,
          .covered_length = longest.length,
          .padded = false,
          .cells_per_clock_per_sm = rate(shape, device, targets),
          .items_per_sm = static_cast<double>(targets * warps(shape, device, targets)),
          .binding_resource = "dependent sums, or the pipe of shared memory"};
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
          .expected = expected,
          .rate = [](const ModelShape& shape, const Constants& c,
                     const DeviceTraits& device) { return rate(shape, device, c.at("kTargets")); },
          .references = kReferences,
          .summary = summary,
          .compile_options = kOptions};
}

}  // namespace four_lane

// One target per block, one warp per HMMER lane: for models so long that four_lane has
// room for few concurrent rows. Registers determine how many blocks fit into an SM.
namespace four_warp {

constexpr int kThreads = 128;
// Stripes per thread, and blocks whose registers fit into an SM without spills. A launch has models
// of a single kernel, so few kernels mean few launches.
struct Run {
  std::int64_t stripes, blocks;
};
constexpr std::array<Run, 9> kRuns{
    {{2, 4}, {3, 4}, {4, 4}, {6, 3}, {8, 3}, {11, 3}, {14, 2}, {18, 2}, {19, 2}}};

// The kernel for a model; kRuns.end() if it is too long for all.
auto run_of(int length) {
  return std::ranges::lower_bound(kRuns, (four_lane::stripes(length) + 31) / 32, {}, &Run::stripes);
}

// Clocks per row in all passes, measured on an H200 with models of 300 to 2,400 positions. A row
// consists of a few chains of dependent additions; the blocks of an SM hide each other's latency.
double clocks(Stage stage, const Run& run) {
  const auto stripes = static_cast<double>(run.stripes);
  return stage == Stage::kParser ? 10'500 + 550 * stripes : 17'500 + 600 * stripes;
}

// Three blocks leave 168 registers per thread, too few for envelopes with eleven stripes.
std::int64_t most_blocks(Stage stage, const Run& run) {
  return stage == Stage::kEnvelope && run.stripes == 11 ? 2 : run.blocks;
}

double rate(Stage stage, int length) {
  const auto run = run_of(length);
  return stage == Stage::kEnsemble || run == kRuns.end()
             ? 0
             : static_cast<double>(most_blocks(stage, *run)) * length / clocks(stage, *run);
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  const auto run = run_of(shape.length);
  if (run == kRuns.end())
    return Verdict::reject(
        fmt::format("{} positions are more than the {} whose cells the registers of a block hold",
                    shape.length, kRuns.back().stripes * kThreads));
  if (4 * hmmjit_device::four_warp_floats(static_cast<std::uint32_t>(run->stripes)) >
      static_cast<std::uint32_t>(device.shared_per_block_limit))
    return Verdict::reject("the model's odds are more than the shared memory of one block");
  return Verdict::accept();
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits&) {
  const Run& run = *run_of(shape.length);
  std::vector<Constants> all;
  // If a compiler spills, the next choice is one block less; two blocks leave all registers.
  const std::int64_t most = most_blocks(shape.stage, run);
  for (std::int64_t blocks = most; blocks >= std::max<std::int64_t>(most - 1, 2); --blocks)
    all.push_back({{"kRun", run.stripes}, {"kTargets", 1}, {"kBlocks", blocks}});
  return all;
}

Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  const Run run{c.at("kRun"), c.at("kBlocks")};
  const auto floats = hmmjit_device::four_warp_floats(static_cast<std::uint32_t>(run.stripes));
  return {.launch = {kThreads, 4 * floats},
          .registers = register_bound(run.blocks * kThreads),
          .covered_length = static_cast<int>(kThreads * run.stripes),
          .cells_per_clock_per_sm =
              static_cast<double>(run.blocks * kThreads * run.stripes) / clocks(shape.stage, run),
          .items_per_sm = static_cast<double>(run.blocks),
          .binding_resource = "latency of dependent sums"};
}

constexpr KernelVariant variant(Stage stage, std::string_view file, std::string_view entry,
                                std::string_view summary) {
  return {.name = "four_warp",
          .stage = stage,
          .template_file = file,
          .entry_name = entry,
          .cell = CellType::kFloat,
          .accepts = accepts,
          .constants = constants,
          .expected = expected,
          .references = four_lane::kReferences,
          .summary = summary,
          .compile_options = four_lane::kOptions};
}

}  // namespace four_warp

const std::array kParsers{
    four_lane::variant(
        Stage::kParser, "parser/four_lane.cu", "parser_four_lane",
        "Forward, Backward, decoding and regions of whole targets in HMMER's float order"),
    four_warp::variant(Stage::kParser, "parser/four_warp.cu", "parser_four_warp",
                       "the same for long models, a target a block")};
const std::array kEnsembles{four_lane::variant(
    Stage::kEnsemble, "ensemble/four_lane.cu", "ensemble_four_lane",
    "sampled traces of regions of several domains, 32 choices at a time, and their clusters")};
const std::array kEnvelopes{
    four_lane::variant(
        Stage::kEnvelope, "envelope/four_lane.cu", "envelope_four_lane",
        "Forward, Backward, null2 and optimal accuracy path of envelopes, in the same order"),
    four_warp::variant(Stage::kEnvelope, "envelope/four_warp.cu", "envelope_four_warp",
                       "the same for long models, an envelope a block")};

}  // namespace

std::span<const KernelVariant> parser_variants() { return kParsers; }
std::span<const KernelVariant> ensemble_variants() { return kEnsembles; }
std::span<const KernelVariant> envelope_variants() { return kEnvelopes; }

}  // namespace hmmjit::plan
