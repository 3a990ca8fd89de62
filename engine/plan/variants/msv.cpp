// Catalogue of the msv stage: see plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "plan/variants/candidates.hpp"
#include "plan/variants/paper_designs/entries.hpp"

namespace hmmjit::plan {
namespace {

// ---- multi_lane: CUDAMPF++ 2017 -----------------------------------------------------------------

namespace multi_lane {

constexpr std::array<std::string_view, 2> kReferences{
    "Jiang, Ganesan & Yao 2017, CUDAMPF++, arXiv:1707.09683",
    "Li, Chen & Sun 2012, speculative hmmsearch on GPU"};

constexpr int kWarp = 32;
// Maximum words per lane without spills on sm_75 to sm_120, within 168 or 128 registers.
constexpr int kMostWords = 72;
constexpr int kMostWordsOfTwoBlocks = 64;
constexpr std::size_t kCandidates = 6;

int words_of(const ModelShape& shape, int lanes) {
  return (shape.length + 2 * lanes - 1) / (2 * lanes);
}
std::int64_t table_bytes(int lanes, int words) {
  return std::int64_t{30} * ((words + 3) / 4) * 16 * std::max(lanes, 8);  // 30 table rows
}

Constants make_constants(int lanes, int words, int threads, int blocks) {
  return {{"kS", kWarp / lanes},
          {"kL", lanes},
          {"kH", words},
          {"kThreads", threads},
          {"kBlocks", blocks}};
}

// Fitted to 30 kernels measured on an H200 (M 45 to 3591, 238 M residues on 132 SMs, among them two
// targets of 50,000). Throughput bounds the sum of all rows. Since the recurrence runs along a
// target, the longest target also bounds the launch, unless its rows are short; many words per lane
// make them long. With few targets, as after an SSV launch, this bound matters even more.
constexpr double kRowClocks = 7.5, kWordClocks = 1.12;     // throughput, per warp
constexpr double kRowLatency = 155.0, kWordLatency = 5.5;  // per target, with other warps resident
constexpr double kResiduesOfSm = 1.8e6, kLongestTarget = 5e4;

double rate_of(int lanes, int words) {
  const double all = kResiduesOfSm / kWarp * lanes * (kRowClocks + kWordClocks * words);
  const double longest = kLongestTarget * (kRowLatency + kWordLatency * words);
  // A smooth maximum of the two bounds.
  const double clocks = std::pow(std::pow(all, 4) + std::pow(longest, 4), 0.25);
  return 2.0 * lanes * words * kResiduesOfSm / clocks;
}

std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  RankedConstants ranked;
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    const int words = words_of(shape, lanes);
    const std::int64_t table = table_bytes(lanes, words);
    if (words > kMostWords || table > device.shared_per_block_limit) continue;
    const bool two = words <= kMostWordsOfTwoBlocks &&
                     2 * (table + device.shared_reserved_per_block) <= device.shared_per_sm;
    const double rate = rate_of(lanes, words) * shape.length / (2.0 * lanes * words);
    ranked.add(rate, make_constants(lanes, words, two ? 256 : 384, two ? 2 : 1));
  }
  return ranked.best(kCandidates);
}

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format(
      "no split of {} positions among 1 to 32 lanes has at most {} words a lane and an emission "
      "table within {} bytes of shared memory",
      shape.length, kMostWords, device.shared_per_block_limit));
}

Expected expected(const ModelShape&, const Constants& c, const DeviceTraits& device) {
  const auto lanes = static_cast<int>(c.at("kL")), words = static_cast<int>(c.at("kH"));
  double rate = rate_of(lanes, words);
  if (!device.has_dpx()) rate *= 0.25;
  return {.launch = {static_cast<int>(c.at("kThreads")), table_bytes(lanes, words)},
          .registers = register_bound(c.at("kThreads") * c.at("kBlocks")),
          .covered_length = lanes * 2 * words,
          .sequences_per_warp = static_cast<int>(c.at("kS")),
          .row_words = words,
          .cells_per_clock_per_sm = rate,
          .binding_resource = "shared memory bandwidth"};
}

}  // namespace multi_lane

const std::array kVariants{
    KernelVariant{.name = "multi_lane_half",
                  .stage = Stage::kMsv,
                  .template_file = "msv/multi_lane.cu",
                  .entry_name = "msv_multi_lane",
                  .cell = CellType::kHalf,
                  .accepts = multi_lane::accepts,
                  .constants = multi_lane::constants,
                  .expected = multi_lane::expected,
                  .references = multi_lane::kReferences,
                  .summary = "S sequences per warp, half-precision cells, B raised on demand"},
};

}  // namespace

std::span<const KernelVariant> msv_variants() {
  static const auto all = paper::joined({kVariants, paper::msv_entries()});
  return all;
}

}  // namespace hmmjit::plan
