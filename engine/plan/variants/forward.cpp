// Catalogue of the forward stage: see plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "plan/variants/candidates.hpp"

namespace hmmjit::plan {
namespace {

namespace row_scan {

constexpr std::array<std::string_view, 1> kReferences{"Blelloch 1990 (prefix sums)"};
constexpr int kWarp = 32;
constexpr int kTableRows = 30;
constexpr int kMostNodes = 16;  // per lane: eleven registers each, see Shape::registers
constexpr int kMostWarps = 16;
constexpr std::size_t kCandidates = 5;

struct Shape {
  int lanes = 0, nodes = 0, warps = 1;
  bool shared = true;  // the emission table
  int more = 0;        // additional registers that a device needs
  int covered() const { return lanes * nodes * warps; }
  std::int64_t table() const {
    return std::int64_t{kTableRows} * ((nodes + 3) / 4) * warps * std::max(lanes, 8) * 16;
  }
  std::int64_t records() const { return warps * (2 * 20 + 12) + 4; }
  std::int64_t shared_bytes() const { return (shared ? table() : 0) + records(); }
  /// Registers per thread without spills on sm_75 to sm_121: three cells, seven odds and
  /// temporaries per node; one factor per step of the scan; more if rows are joined across warps or
  /// emissions are gathered. An upper bound fitted to 150 compiled shapes.
  int registers() const {
    // A lane that processes a target alone needs no scan, but its own addresses.
    const int scan = lanes == 1 ? 2 : std::bit_width(static_cast<unsigned>(lanes)) - 1;
    return 11 * nodes + 35 + scan + std::min(2 * (warps - 1), 10) + (shared ? 0 : 6) + more;
  }
  /// Number of warps that an SM's registers can hold, with 128, 168 or 255 per thread.
  int resident_warps() const {
    for (const int resident : {16, 12}) {
      if (registers() <= register_bound(kWarp * resident)) return resident;
    }
    return 8;
  }
  int threads() const { return warps > 1 ? kWarp * warps : kWarp * resident_warps(); }
  int blocks() const { return warps > 1 ? resident_warps() / warps : 1; }
};

// With eight nodes per lane, sm_100 to sm_110 spill two words of 128 registers.
int more_registers(const DeviceTraits& device) {
  return device.major == 10 || device.major == 11 ? 2 : 0;
}

Shape shape_of(const Constants& c, const DeviceTraits& device) {
  return {static_cast<int>(c.at("kL")), static_cast<int>(c.at("kH")),
          static_cast<int>(c.at("kWarps")), c.at("kShared") != 0, more_registers(device)};
}

// Twelve multiply-adds per cell; per row about 70 instructions for the scan, the sum of the end
// score and the special states. At least eight resident warps hide their latency.
double predicted_rate(const Shape& s) {
  const double resident = s.blocks() * s.threads() / static_cast<double>(kWarp);
  return 128 * s.nodes / (14.0 * s.nodes + 70 + 12 * (s.warps - 1)) * std::min(1.0, resident / 10);
}

Constants make_constants(const Shape& s) {
  return {{"kS", kWarp / s.lanes},
          {"kL", s.lanes},
          {"kH", s.nodes},
          {"kWarps", s.warps},
          {"kShared", s.shared ? 1 : 0},
          {"kThreads", s.threads()},
          {"kBlocks", s.blocks()}};
}

bool fits(const Shape& s, const DeviceTraits& device) {
  return s.shared_bytes() <= device.shared_per_block_limit &&
         s.blocks() * (s.shared_bytes() + device.shared_reserved_per_block) <= device.shared_per_sm;
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  RankedConstants ranked;
  const auto consider = [&](int lanes, int warps) {
    const int width = lanes * warps;
    Shape s{lanes, (shape.length + width - 1) / width, warps, true, more_registers(device)};
    s.shared = fits(s, device);
    if (s.nodes > kMostNodes || s.blocks() == 0) return;
    ranked.add(predicted_rate(s) * shape.length / s.covered(), make_constants(s));
  };
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) consider(lanes, 1);
  for (int warps = 2; warps <= kMostWarps; ++warps) consider(kWarp, warps);
  return ranked.best(kCandidates);
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format(
      "{} positions are more than the registers of one block hold; the CPU scores such a model",
      shape.length));
}

Expected expected(const ModelShape&, const Constants& c, const DeviceTraits& device) {
  const Shape s = shape_of(c, device);
  return {.launch = {static_cast<int>(c.at("kThreads")), s.shared_bytes()},
          .registers = register_bound(c.at("kThreads") * c.at("kBlocks")),
          .covered_length = s.covered(),
          .sequences_per_warp = 32 / s.lanes,
          .row_words = s.nodes,
          .cells_per_clock_per_sm = predicted_rate(s),
          .binding_resource = "issue",
          .placement = placement_name(s.shared)};
}

constexpr std::array<std::string_view, 1> kOptions{"--ftz=true"};

}  // namespace row_scan

const std::array kVariants{
    KernelVariant{.name = "row_scan",
                  .stage = Stage::kForward,
                  .template_file = "forward/row_scan.cu",
                  .entry_name = "forward_row_scan",
                  .cell = CellType::kFloat,
                  .accepts = row_scan::accepts,
                  .constants = row_scan::constants,
                  .expected = row_scan::expected,
                  .references = row_scan::kReferences,
                  .summary = "S sequences per warp or several warps each, delete states by scan",
                  .compile_options = row_scan::kOptions},
};

}  // namespace

std::span<const KernelVariant> forward_variants() { return kVariants; }

}  // namespace hmmjit::plan
