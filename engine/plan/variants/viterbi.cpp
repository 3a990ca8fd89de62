// Catalogue of the viterbi stage: see plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/variants/candidates.hpp"
#include "plan/variants/paper_designs/entries.hpp"

namespace hmmjit::plan {
namespace {

constexpr int kWarp = 32;

// ---- wavefront: packed words, 2L virtual lanes, J speculated ------------------------------------

namespace wavefront {

constexpr std::array<std::string_view, 2> kReferences{
    "Li et al. 2012 (speculation on J)",
    "wavefront order: Lipton & Lopresti 1985 (systolic array)"};
// Maximum words per lane. On sm_90 more of them stay in registers if one target takes the whole
// warp, because all lanes then have the same loop bounds.
int most_words(int lanes, bool tiled, const DeviceTraits& device) {
  return tiled || lanes < kWarp ? 15 : device.major == 9 ? 20 : 16;
}
constexpr int kTableRows = 30;
constexpr double kTypicalTarget = 350;  // in residues, for the cost of filling the wavefront

struct Shape {
  int lanes = 0, words = 0;
  bool tiled = false;
  bool wide = false;  ///< match scores in separate words, combined off the integer pipe
  int nodes() const { return 2 * lanes * words; }
  std::int64_t shared() const {
    const int in_chunk = wide ? 4 : 8;
    return std::int64_t{kTableRows} * 2 * ((words + in_chunk - 1) / in_chunk) * std::max(lanes, 8) *
           16;
  }
};

/// The wide table pays off if packed sums and maxima are single instructions and it fits into
/// shared memory.
Shape with_table(Shape s, const DeviceTraits& device) {
  s.wide = device.has_dpx();
  s.wide = s.wide && s.shared() <= device.shared_per_block_limit;
  // The compiler spills with 18 words, but not with 19 (sm_90).
  if (s.words == 18 && !s.tiled && device.major == 9) s.words = 19;
  return s;
}

Shape shape_of(const Constants& c) {
  return {static_cast<int>(c.at("kL")), static_cast<int>(c.at("kH")), c.at("kTiled") != 0,
          c.at("kWide") != 0};
}

// Registers per thread without spills: seven costs and three cells per word; more if every lane
// processes its own target, if one target takes all lanes, and for a tile's boundary column. Tiles
// and sm_100 need still more if three words share the last quarter of the table. From sm_100 on,
// and with emulated packed maxima, more intermediate results are live. An upper bound fitted to 380
// compiled shapes.
int registers(const Shape& s, const DeviceTraits& device) {
  if (!device.has_dpx()) return 15 * s.words + 58;
  const bool later = device.major >= 10;
  int more = s.lanes == 1 || s.lanes == kWarp ? 5 : 0;
  if (s.tiled) more += later ? 10 : s.words < 13 ? 6 : 0;
  if (s.words > 8 && s.words % 4 == 3 && (s.tiled || later)) more += 18;
  return 10 * s.words + (later ? 40 : 33) + more;
}

// Warps come in fours (one per scheduler): the largest of 8, 12 and 16 per SM for which there are
// enough registers; 0 if none.
int block_threads(const Shape& s, const DeviceTraits& device) {
  const int need = registers(s, device);
  for (const int threads : {512, 384}) {
    // 128 registers hold eight words; with nine, two of them spill on sm_90.
    if (threads == 512 && s.words > 8) continue;
    if (device.has_dpx() && need <= register_bound(threads)) return threads;
  }
  return need <= register_bound(256) && s.words <= most_words(s.lanes, s.tiled, device) ? 256 : 0;
}

Constants make_constants(const Shape& s, const DeviceTraits& device) {
  return {{"kS", kWarp / s.lanes},
          {"kL", s.lanes},
          {"kH", s.words},
          {"kTiled", s.tiled ? 1 : 0},
          {"kWide", s.wide ? 1 : 0},
          {"kThreads", block_threads(s, device)},
          {"kBlocks", 1}};
}

bool fits(const Shape& s, const DeviceTraits& device) {
  return block_threads(s, device) > 0 && s.shared() <= device.shared_per_block_limit;
}

// Seven add-max and half a maximum per word on the integer pipe (64 per clock), and about 18 more
// instructions per row; 2L - 1 rows of every target fill and drain the wavefront. Factors fitted to
// 40 kernels measured on an H200, M 45 to 3591: eight warps per SM leave some latency exposed
// unless a lane has many words; many sequences per warp miss the caches; a tile's boundary column
// goes through memory.
double predicted_rate(const Shape& s, const DeviceTraits& device) {
  const double fill = kTypicalTarget / (kTypicalTarget + 2 * s.lanes - 1);
  const double warps = s.words >= 14 && s.words <= 17 ? 0.95 : 1.0;
  const double caches = s.lanes == 1 ? 0.6 : s.lanes == 2 ? 0.87 : 1.0;
  const double boundary = !s.tiled ? 1.0 : s.words <= 13 ? 0.86 : 0.78;
  // Without DPX, packed 16-bit sums and maxima take about eight operations each.
  const double emulated = device.has_dpx() ? 1.0 : 0.12;
  return 2 * 64 * s.words / (9.1 * s.words + 18) * fill * warps * caches * boundary * emulated;
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  RankedConstants ranked;
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    const Shape s = with_table({lanes, (shape.length + 2 * lanes - 1) / (2 * lanes)}, device);
    if (!fits(s, device)) continue;
    ranked.add(predicted_rate(s, device) * shape.length / s.nodes(), make_constants(s, device));
  }
  return ranked.best();
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants(shape, device).empty()) return Verdict::accept();
  const Shape widest = with_table({kWarp, (shape.length + 2 * kWarp - 1) / (2 * kWarp)}, device);
  return Verdict::reject(fmt::format(
      "{} positions are {} words in each of 32 lanes: {} registers a thread, {} bytes of tables",
      shape.length, widest.words, registers(widest, device), widest.shared()));
}

Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits& device) {
  const Shape s = shape_of(c);
  const int tiles = s.tiled ? (shape.length + s.nodes() - 1) / s.nodes() : 1;
  return {.launch = {static_cast<int>(c.at("kThreads")), s.shared()},
          .registers = register_bound(c.at("kThreads") * c.at("kBlocks")),
          .covered_length = tiles * s.nodes(),
          .tile_length = s.tiled ? s.nodes() : 0,
          // M, I and D of a tile's last node: WordBoundary in common/late_params.h.
          .scratch_per_residue = s.tiled ? 8 : 0,
          .sequences_per_warp = kWarp / s.lanes,
          .row_words = s.words,
          .cells_per_clock_per_sm = predicted_rate(s, device),
          .binding_resource = "integer pipe"};
}

std::vector<Constants> tiled_constants(const ModelShape& shape, const DeviceTraits& device) {
  constexpr int kWidth = 2 * kWarp;
  constexpr std::size_t kCandidates = 3;
  int words = most_words(kWarp, true, device);
  while (words > 1 && !fits(with_table({kWarp, words, true}, device), device)) --words;
  const int most = kWidth * words;
  const int fewest = (shape.length + most - 1) / most;
  RankedConstants ranked;
  for (int tiles = fewest; tiles < fewest + 8; ++tiles) {
    const Shape s =
        with_table({kWarp, (shape.length + tiles * kWidth - 1) / (tiles * kWidth), true}, device);
    if (!fits(s, device)) continue;
    ranked.add(predicted_rate(s, device) / (s.nodes() * tiles), make_constants(s, device));
  }
  return ranked.best(kCandidates);
}

Verdict tiled_accepts(const ModelShape&, const DeviceTraits&) { return Verdict::accept(); }

}  // namespace wavefront

// ---- row by row ---------------------------------------------------------------------------------

namespace row_scan {

constexpr std::array<std::string_view, 1> kReferences{"Blelloch 1990 (prefix sums)"};
constexpr int kThreads = 128;

int nodes(const ModelShape& shape) { return (shape.length + kWarp - 1) / kWarp * kWarp; }
std::int64_t row_bytes(std::int64_t nodes) { return kThreads / kWarp * 3 * nodes * 2; }

Verdict accepts(const ModelShape&, const DeviceTraits&) { return Verdict::accept(); }

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  const int n = nodes(shape);
  const bool fits =
      4 * row_bytes(n) <= device.shared_per_sm && row_bytes(n) <= device.shared_per_block_limit;
  return {{{"kNodes", n}, {"kShared", fits ? 1 : 0}, {"kThreads", kThreads}}};
}

Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  // About 110 instructions per chunk of 32 nodes, four per clock, limited by latency.
  return {.launch = {static_cast<int>(c.at("kThreads")),
                     c.at("kShared") ? row_bytes(c.at("kNodes")) : 0},
          .registers = 64,
          .covered_length = static_cast<int>(c.at("kNodes")),
          .scratch_per_warp = c.at("kShared") ? 0 : 3 * 2 * c.at("kNodes"),
          .cells_per_clock_per_sm = c.at("kShared") ? 0.42 : 0.18,
          .binding_resource = "shuffle and load latency",
          .placement = placement_name(c.at("kShared") != 0)};
}

}  // namespace row_scan

// ---- row by row, several nodes a lane -----------------------------------------------------------

namespace lane_scan {

constexpr int kMostNodes = 8;  // per lane: twelve registers each
// With more warps only 128 registers remain per thread, and seven nodes spill, so no positions are
// gained.
constexpr int kMostWarps = 12;

// The fewest warps per sequence, because warps add more latency per row than nodes do.
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits&) {
  std::vector<Constants> out;
  for (int warps = 1; warps <= kMostWarps; ++warps) {
    const int nodes = (shape.length + kWarp * warps - 1) / (kWarp * warps);
    if (nodes > kMostNodes) continue;
    // An SM allocates registers to four warps at a time.
    if (warps > 8 && warps % 4 != 0) continue;
    const int threads = warps > 1 ? kWarp * warps : 4 * kWarp;
    out.push_back({{"kH", nodes},
                   {"kWarps", warps},
                   {"kThreads", threads},
                   {"kBlocks", std::max(1, 12 * kWarp / threads)}});
    break;
  }
  return out;
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(
      fmt::format("{} positions are more than {} in each of {} lanes; row_scan takes any model",
                  shape.length, kMostNodes, kMostWarps * kWarp));
}

Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  return {.launch = {static_cast<int>(c.at("kThreads")), c.at("kWarps") * 48 + 4},
          .registers = register_bound(c.at("kThreads") * c.at("kBlocks")),
          .covered_length = static_cast<int>(kWarp * c.at("kH") * c.at("kWarps")),
          .row_words = static_cast<int>(c.at("kH")),
          .cells_per_clock_per_sm = 2.0,
          .binding_resource = "shuffle latency"};
}

}  // namespace lane_scan

const std::array kVariants{
    KernelVariant{.name = "wavefront",
                  .stage = Stage::kViterbi,
                  .template_file = "viterbi/wavefront.cu",
                  .entry_name = "viterbi_wavefront",
                  .cell = CellType::kWord,
                  .speculates = true,
                  .accepts = wavefront::accepts,
                  .constants = wavefront::constants,
                  .expected = wavefront::expected,
                  .references = wavefront::kReferences,
                  .summary = "S sequences per warp, systolic, J speculated and checked"},
    KernelVariant{.name = "row_scan",
                  .stage = Stage::kViterbi,
                  .template_file = "viterbi/row_scan.cu",
                  .entry_name = "viterbi_row_scan",
                  .cell = CellType::kWord,
                  .competes = false,
                  .completes = true,
                  .accepts = row_scan::accepts,
                  .constants = row_scan::constants,
                  .expected = row_scan::expected,
                  .references = row_scan::kReferences,
                  .summary = "a warp per sequence, delete states by prefix scan, exact for all"},
    KernelVariant{
        .name = "lane_scan",
        .stage = Stage::kViterbi,
        .template_file = "viterbi/lane_scan.cu",
        .entry_name = "viterbi_lane_scan",
        .cell = CellType::kWord,
        // On devices without DPX the predicted rate exceeds wavefront's, but neither is measured.
        .competes = false,
        .completes = true,
        .accepts = lane_scan::accepts,
        .constants = lane_scan::constants,
        .expected = lane_scan::expected,
        .references = row_scan::kReferences,
        .summary = "warps per sequence, cells in registers, one scan a row, exact for all"},
};
// Must be last, because it accepts every model.
const std::array kLast{
    KernelVariant{.name = "wavefront_tiled",
                  .stage = Stage::kViterbi,
                  .template_file = "viterbi/wavefront.cu",
                  .entry_name = "viterbi_wavefront",
                  .cell = CellType::kWord,
                  .speculates = true,
                  .accepts = wavefront::tiled_accepts,
                  .constants = wavefront::tiled_constants,
                  .expected = wavefront::expected,
                  .references = wavefront::kReferences,
                  .summary = "a warp per sequence, the model in tiles, one launch each"},
};

}  // namespace

std::span<const KernelVariant> viterbi_variants() {
  static const auto all = paper::joined({kVariants, paper::viterbi_entries(), kLast});
  return all;
}

}  // namespace hmmjit::plan
