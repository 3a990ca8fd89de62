// Catalogue of the ssv stage: see plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "plan/variants/candidates.hpp"
#include "plan/variants/paper_designs/entries.hpp"
#include "plan/variants/ssv_measured.hpp"

namespace hmmjit::plan {
namespace {

// ---- multi_lane: CUDAMPF++ 2017 -----------------------------------------------------------------

namespace multi_lane {

constexpr std::array<std::string_view, 1> kReferences{
    "Jiang, Ganesan & Yao 2017, CUDAMPF++, arXiv:1707.09683"};

using ssv_measured::MeasuredSplit;

constexpr int kWarp = 32;
// Cell words per lane. 97 compile to at most 155 of 168 registers on sm_75 to sm_120; with 16-bit
// words only, more loads are in flight, and 97 spill (sm_120).
constexpr int kMostWords = 97;
constexpr int kMostHalfWords = 88;
constexpr int kMostRegisters = 255;
constexpr std::size_t kCandidates = 16;

/// Size in bytes of one segment in an emission row: see Segment in ssv/multi_lane.cu.
std::int64_t segment_bytes(std::int64_t lanes, std::int64_t words) {
  const std::int64_t chunks = words / 4 + (words % 4 == 3 ? 1 : 0);
  return chunks * 16 * std::max<std::int64_t>(lanes, 8) +
         (words % 4 == 2 ? 8 * std::max<std::int64_t>(lanes, 16) : 0) +
         (words % 4 == 1 ? 4 * kWarp : 0);
}

struct Shape {
  int lanes = 0, byte_words = 0, half_words = 0;
  int words() const { return byte_words + half_words; }
  constexpr int nodes() const { return lanes * (4 * byte_words + 2 * half_words); }
  double half_share() const { return 2.0 * half_words * lanes / nodes(); }
  std::int64_t shared() const {
    return 32 * (segment_bytes(lanes, byte_words) + segment_bytes(lanes, half_words));
  }
  bool operator==(const Shape&) const = default;
};

Shape shape_of(const Constants& c) {
  return {static_cast<int>(c.at("kL")), static_cast<int>(c.at("kHb")),
          static_cast<int>(c.at("kHh"))};
}

/// The cheapest cover of `nodes` by `lanes` lanes with about `half_share` of them in 16-bit cells.
Shape cover(int nodes, int lanes, double half_share) {
  const int share = (nodes + lanes - 1) / lanes;
  Shape s{lanes, 0, static_cast<int>(std::lround(share * half_share / 2))};
  s.byte_words = (std::max(0, share - 2 * s.half_words) + 3) / 4;
  while (s.half_words > 0 && 4 * s.byte_words + 2 * (s.half_words - 1) >= share) --s.half_words;
  return s;
}

// Fitted to 500 kernels measured on an H200 (132 SMs, 1.98 GHz; M 45 to 3591, 238 M residues).
// Per-row work that does not grow with the model (residue, address, shuffle, permutes) is amortised
// over the lane's words. The fraction of 16-bit cells balances the integer pipe (3 operations per
// byte word, 0.5 per 16-bit word, 64 per clock) against shared memory (one byte per byte cell, two
// per 16-bit cell, 128 per clock).
constexpr double kPeak = 81.0;  // maximum cells per clock and SM: many words per lane, ideal share
constexpr int kWideWords = 60;  // from here on, fewer warps with more registers each
double best_half_share(int words) {
  return words >= kWideWords ? 0.30 : 0.30 + 0.14 * (kWideWords - words) / 42.0;
}
double predicted_rate(const Shape& s) {
  const double words = s.words() + 1.0;
  const double best = best_half_share(s.words());
  const double share = s.half_share();
  const double balance = share < best ? 1.0 - share / best : share / best - 1.0;
  return kPeak * (1.0 - 45.0 / (words * words + 45.0)) * (1.0 - 0.10 * balance) *
         (s.words() >= kWideWords ? 1.0 : 0.985);
}

// ---- measured rates

constexpr Shape shape_of(const MeasuredSplit& m) { return {m.lanes, m.byte_words, m.half_words}; }
static_assert(std::ranges::is_sorted(ssv_measured::kMeasured, {}, &MeasuredSplit::length));
static_assert(std::ranges::all_of(ssv_measured::kMeasured, [](const MeasuredSplit& m) {
  return shape_of(m).nodes() == m.length && kWarp % m.lanes == 0;
}));

/// The fastest split of this size class if it was measured at the device's compute capability.
const MeasuredSplit* measured_split(int length, const DeviceTraits& device) {
  if (device.capability() != ssv_measured::kMeasuredCapability) return nullptr;
  const auto found =
      std::ranges::lower_bound(ssv_measured::kMeasured, length, {}, &MeasuredSplit::length);
  return found != ssv_measured::kMeasured.end() && found->length == length ? &*found : nullptr;
}

/// Cells per clock and SM, including padded ones, as in predicted_rate().
double measured_rate(const MeasuredSplit& m) {
  return m.gcups / (ssv_measured::kMeasuredSms * ssv_measured::kMeasuredGigahertz) *
         shape_of(m).nodes() / m.length;
}

/// The measured rate if the class was measured (for its other splits, an upper bound), else the
/// predicted one.
double expected_rate(const Shape& s, int length, const DeviceTraits& device) {
  const MeasuredSplit* best = measured_split(length, device);
  if (best == nullptr || s.byte_words == 0 || s.half_words == 0) return predicted_rate(s);
  const Shape b = shape_of(*best);
  if (s == b) return measured_rate(*best);
  constexpr double kSlower = 0.995;
  return std::min(predicted_rate(s), kSlower * measured_rate(*best) * s.nodes() / b.nodes());
}

struct Residency {
  int threads = 0, blocks = 0;
  int registers() const { return register_bound(threads * blocks); }
};

// Sixteen warps per SM hide the latencies. Lanes with more words have enough parallelism of their
// own and use twelve warps with more registers each. All warps of a block share its table.
std::optional<Residency> residency(const Shape& s, const DeviceTraits& device) {
  constexpr std::array<Residency, 6> kChoices{
      {{384, 1}, {256, 2}, {320, 2}, {512, 1}, {640, 1}, {256, 1}}};
  for (const Residency& r : kChoices) {
    if (s.words() + 52 > r.registers() && r.registers() < kMostRegisters) continue;
    const bool wide = s.words() >= kWideWords;
    if (wide != (r.threads * r.blocks == 384) && r.blocks * r.threads != 256) continue;
    const std::int64_t each = s.shared() + device.shared_reserved_per_block;
    if (s.shared() > device.shared_per_block_limit) continue;
    if (r.blocks * each > device.shared_per_sm) continue;
    if (r.blocks * r.threads > device.max_threads_per_sm) continue;
    return r;
  }
  return std::nullopt;
}

enum class Mode { kScores, kTiles, kScan };

Constants make_constants(const Shape& s, Mode mode, const Residency& r) {
  return {{"kS", kWarp / s.lanes},
          {"kL", s.lanes},
          {"kHb", s.byte_words},
          {"kHh", s.half_words},
          {"kTiled", mode == Mode::kTiles ? 1 : 0},
          {"kScan", mode == Mode::kScan ? 1 : 0},
          {"kThreads", r.threads},
          {"kBlocks", r.blocks}};
}

std::vector<Constants> candidates(const ModelShape& shape, const DeviceTraits& device,
                                  std::span<const double> half_shares, Mode mode = Mode::kScores) {
  RankedConstants ranked;
  const auto add = [&](const Shape& s) {
    if (s.words() == 0 || s.words() > (s.byte_words > 0 ? kMostWords : kMostHalfWords)) return;
    const auto r = residency(s, device);
    if (!r) return;
    ranked.add(expected_rate(s, shape.length, device) * shape.length / s.nodes(),
               make_constants(s, mode, *r));
  };
  const bool mixed = half_shares.size() > 1;
  const MeasuredSplit* measured = mixed ? measured_split(shape.length, device) : nullptr;
  if (measured != nullptr) add(shape_of(*measured));
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    for (const double share : half_shares) add(cover(shape.length, lanes, share));
  }
  // Add the best of every other lane count, because a policy may prefer its S.
  std::set<std::int64_t> lane_counts;
  return ranked.best(kCandidates,
                     [&](const Constants& c) { return lane_counts.insert(c.at("kL")).second; });
}

constexpr std::array kMixedShares{0.20, 0.22, 0.24, 0.26, 0.27, 0.28, 0.29, 0.30, 0.31, 0.32,
                                  0.33, 0.34, 0.35, 0.36, 0.38, 0.40, 0.41, 0.42, 0.44, 0.47};
constexpr std::array kNoHalves{0.0};
constexpr std::array kAllHalves{1.0};

std::vector<Constants> mixed_constants(const ModelShape& shape, const DeviceTraits& device) {
  std::vector<Constants> out = candidates(shape, device, kMixedShares);
  // Very short models leave a segment without words; another variant takes them.
  std::erase_if(out, [](const Constants& c) { return c.at("kHb") == 0 || c.at("kHh") == 0; });
  return out;
}
std::vector<Constants> byte_constants(const ModelShape& shape, const DeviceTraits& device) {
  return candidates(shape, device, kNoHalves);
}
// Includes a share of 0, because some very short models leave no word for the 16-bit segment.
std::vector<Constants> scan_constants(const ModelShape& shape, const DeviceTraits& device) {
  std::vector<double> shares(kMixedShares.begin(), kMixedShares.end());
  shares.push_back(0.0);
  return candidates(shape, device, shares, Mode::kScan);
}
std::vector<Constants> half_constants(const ModelShape& shape, const DeviceTraits& device) {
  return candidates(shape, device, kAllHalves);
}

template <std::vector<Constants> (*kConstants)(const ModelShape&, const DeviceTraits&)>
Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!kConstants(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format(
      "no split of {} positions among 1 to 32 lanes has at most {} words a lane and an emission "
      "table within {} bytes of shared memory",
      shape.length, kMostWords, device.shared_per_block_limit));
}

Expected expected(const ModelShape& shape, const Constants& c, const DeviceTraits& device) {
  const Shape s = shape_of(c);
  const int tiles = c.at("kTiled") ? (shape.length + s.nodes() - 1) / s.nodes() : 1;
  double rate = expected_rate(s, shape.length, device);
  std::string_view binding = "integer pipe";
  if (s.byte_words == 0) {
    rate = std::min(rate, 58.0);
    binding = "shared memory bandwidth";
  } else if (s.half_share() > best_half_share(s.words())) {
    binding = "shared memory bandwidth";
  }
  if (c.at("kTiled")) rate *= 0.6;
  // Without hardware for packed 16-bit maxima, each takes four to seven operations.
  if (!device.has_dpx()) rate *= 0.35;
  const auto threads = static_cast<int>(c.at("kThreads"));
  return {.launch = {threads, s.shared()},
          .registers = Residency{threads, static_cast<int>(c.at("kBlocks"))}.registers(),
          .covered_length = tiles * s.nodes(),
          .tile_length = c.at("kTiled") ? s.nodes() : 0,
          .scratch_per_residue = c.at("kTiled") ? 1 : 0,  // last cell of a tile
          .sequences_per_warp = kWarp / s.lanes,
          .row_words = s.words(),
          .cells_per_clock_per_sm = rate,
          .binding_resource = binding};
}

// For models too long for one table: equal tiles, each a full warp wide, with one launch each.
std::vector<Constants> tiled_constants(const ModelShape& shape, const DeviceTraits& device) {
  constexpr int kMostTileWords = 44;
  const std::int64_t chunk = segment_bytes(kWarp, 4) * 32;
  const int most = static_cast<int>(
      std::min<std::int64_t>(kMostTileWords, device.shared_per_block_limit / chunk * 4));
  if (most == 0) return {};
  const int tiles = (shape.length + most * 128 - 1) / (most * 128);
  const Shape s{kWarp, (shape.length + tiles * 128 - 1) / (tiles * 128), 0};
  return {make_constants(s, Mode::kTiles, {512, 1})};
}

// An entry with the candidates that `kConstants` lists.
template <std::vector<Constants> (*kConstants)(const ModelShape&, const DeviceTraits&)>
constexpr KernelVariant variant(std::string_view name, CellType cell, std::string_view summary,
                                bool competes = true) {
  return {.name = name,
          .stage = Stage::kSsv,
          .template_file = "ssv/multi_lane.cu",
          .entry_name = "ssv_multi_lane",
          .cell = cell,
          .competes = competes,
          .accepts = accepts<kConstants>,
          .constants = kConstants,
          .expected = expected,
          .references = kReferences,
          .summary = summary};
}

const std::array kVariants{
    variant<mixed_constants>("multi_lane_mixed", CellType::kByteAndHalf,
                             "S sequences per warp, the model split into byte and half cells"),
    variant<byte_constants>("multi_lane_byte", CellType::kByte,
                            "S sequences per warp, four byte cells in a word by carry-free adds"),
    variant<half_constants>("multi_lane_half", CellType::kHalf,
                            "S sequences per warp, two half-precision cells in a word"),
    variant<scan_constants>("multi_lane_blocks", CellType::kByteAndHalf,
                            "multi_lane_mixed for long targets: the largest value of each block of "
                            "rows as well",
                            false),
};
// Must be last, because it accepts every model.
const std::array kLast{
    variant<tiled_constants>("multi_lane_tiled", CellType::kByte,
                             "a warp per sequence, the model in tiles, one launch each"),
};

}  // namespace multi_lane

}  // namespace

std::span<const KernelVariant> ssv_variants() {
  static const auto all =
      paper::joined({multi_lane::kVariants, paper::ssv_entries(), multi_lane::kLast});
  return all;
}

}  // namespace hmmjit::plan
