// Catalogue of the msv stage: see plan/kernel_variant.hpp for how to add an entry.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "plan/variants/candidates.hpp"
#include "plan/variants/paper_designs.hpp"

namespace hmmjit::plan {
namespace {

// ---- multi_lane: CUDAMPF++ 2017 -----------------------------------------------------------------

namespace multi_lane {

constexpr std::array<std::string_view, 2> kReferences{
    "Jiang, Ganesan & Yao 2017, CUDAMPF++, arXiv:1707.09683",
    "Li, Chen & Sun 2012, speculative hmmsearch on GPU"};

constexpr int kWarp = 32;
// Words a lane that compile without spills on sm_75 to sm_120 within 168 or 128 registers.
constexpr int kMostWords = 72;
constexpr int kMostWordsOfTwoBlocks = 64;
constexpr std::size_t kCandidates = 6;
enum class Form { kHalf = 0, kInteger = 1 };

int words_of(const ModelShape& shape, int lanes) {
  return (shape.length + 2 * lanes - 1) / (2 * lanes);
}
std::int64_t table_bytes(int lanes, int words) {
  return std::int64_t{30} * ((words + 3) / 4) * 16 * std::max(lanes, 8);  // 30 table rows
}

Constants make_constants(int lanes, int words, Form form, int threads, int blocks) {
  return {{"kS", kWarp / lanes}, {"kL", lanes},
          {"kH", words},         {"kForm", static_cast<int>(form)},
          {"kThreads", threads}, {"kBlocks", blocks}};
}

// Fitted to 30 kernels measured on an H200 (M 45 to 3591, 238 M residues on 132 SMs, among them two
// targets of 50,000). A row of a warp takes an SM so many clocks; but the recurrence walks a target
// from end to end, so that the longest one rules a launch unless its own rows are short: many words
// a lane make them long. Few targets, as an SSV launch leaves undecided, weigh that even more.
constexpr double kRowClocks = 7.5, kWordClocks = 1.12;     // of a warp, throughput
constexpr double kRowLatency = 155.0, kWordLatency = 5.5;  // of a target, other warps beside it
constexpr double kResiduesOfSm = 1.8e6, kLongestTarget = 5e4;

double rate_of(int lanes, int words) {
  const double all = kResiduesOfSm / kWarp * lanes * (kRowClocks + kWordClocks * words);
  const double longest = kLongestTarget * (kRowLatency + kWordLatency * words);
  // Nearly the larger of both.
  const double clocks = std::pow(std::pow(all, 4) + std::pow(longest, 4), 0.25);
  return 2.0 * lanes * words * kResiduesOfSm / clocks;
}

template <Form kForm>
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  RankedConstants ranked;
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    const int words = words_of(shape, lanes);
    const std::int64_t table = table_bytes(lanes, words);
    if (words > kMostWords || table > device.shared_per_block_limit) continue;
    const bool two = words <= kMostWordsOfTwoBlocks &&
                     2 * (table + device.shared_reserved_per_block) <= device.shared_per_sm;
    const double rate = rate_of(lanes, words) * shape.length / (2.0 * lanes * words);
    ranked.add(rate, make_constants(lanes, words, kForm, two ? 256 : 384, two ? 2 : 1));
  }
  return ranked.best(kCandidates);
}

template <Form kForm>
Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants<kForm>(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format(
      "no split of {} positions among 1 to 32 lanes has at most {} words a lane and an emission "
      "table within {} bytes of shared memory",
      shape.length, kMostWords, device.shared_per_block_limit));
}

LaunchShape launch_shape(const ModelShape&, const Constants& c, const DeviceTraits&) {
  return {.block_threads = static_cast<int>(c.at("kThreads")),
          .dynamic_shared_bytes =
              table_bytes(static_cast<int>(c.at("kL")), static_cast<int>(c.at("kH")))};
}

Expected expected(const ModelShape&, const Constants& c, const DeviceTraits& device) {
  const auto words = static_cast<int>(c.at("kH"));
  double rate = rate_of(static_cast<int>(c.at("kL")), words);
  if (!device.has_dpx()) rate *= c.at("kForm") == 1 ? 0.15 : 0.25;
  return {.registers = register_bound(c.at("kThreads") * c.at("kBlocks")),
          .covered_length = static_cast<int>(c.at("kL")) * 2 * words,
          .sequences_per_warp = static_cast<int>(c.at("kS")),
          .row_words = words,
          .cells_per_clock_per_sm = rate,
          .binding_resource = "shared memory bandwidth"};
}

}  // namespace multi_lane

// ---- thread_speculative: Li, Chen & Sun 2012 ----------------------------------------------------

namespace thread_speculative {

constexpr std::array<std::string_view, 2> kReferences{
    "Li, Chen & Sun 2012, speculative hmmsearch on GPU",
    "Walters, Balu, Kompalli & Chaudhary 2009, rows interleaved in global memory"};

constexpr int kThreads = 128;
constexpr int kMostNodes = 400000;  // 512 KiB of local memory a thread, less what calls need

int words(const ModelShape& shape) { return (shape.length + 3) / 4; }

Verdict accepts(const ModelShape& shape, const DeviceTraits&) {
  if (shape.length <= kMostNodes) return Verdict::accept();
  return Verdict::reject(
      fmt::format("a DP row beyond {} bytes exceeds a thread's local memory", kMostNodes));
}
template <bool kSpeculate>
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits&) {
  return {{{"kWords", words(shape)}, {"kSpeculate", kSpeculate ? 1 : 0}, {"kThreads", kThreads}}};
}
LaunchShape launch_shape(const ModelShape&, const Constants&, const DeviceTraits&) {
  return {.block_threads = kThreads};
}
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto n = static_cast<int>(c.at("kWords"));
  return {.registers = 96,
          .covered_length = 4 * n,
          .cells_per_clock_per_sm = 0.25,
          .local_bytes = 4 * n + 64,
          .binding_resource = "local memory traffic"};
}

}  // namespace thread_speculative

// ---- warp_sync: Jiang & Ganesan 2015 ------------------------------------------------------------

namespace warp_sync {

constexpr std::array<std::string_view, 1> kReferences{
    "Jiang & Ganesan 2015, fine-grained acceleration of HMMER 3.0 via warp synchronisation"};

constexpr int kTableRows = 30;

int words(const ModelShape& shape) { return (shape.length + 127) / 128 * 32; }
std::int64_t shared_bytes(std::int64_t n, bool table, std::int64_t threads) {
  return 4 * ((table ? kTableRows * n : 0) + threads / 32 * 2 * (n + 1));
}

template <bool kTable>
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  const int n = words(shape);
  for (const int threads : {512, 256, 128, 32}) {
    if (shared_bytes(n, kTable, threads) > device.shared_per_block_limit) continue;
    return {{{"kWords", n}, {"kShared", kTable ? 1 : 0}, {"kThreads", threads}}};
  }
  return {};
}
template <bool kTable>
Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants<kTable>(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format("two DP rows of {} bytes{} exceed {} bytes of shared memory",
                                     4 * words(shape), kTable ? " and the cost table" : "",
                                     device.shared_per_block_limit));
}
LaunchShape launch_shape(const ModelShape&, const Constants& c, const DeviceTraits&) {
  return {
      .block_threads = static_cast<int>(c.at("kThreads")),
      .dynamic_shared_bytes = shared_bytes(c.at("kWords"), c.at("kShared") != 0, c.at("kThreads"))};
}
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto n = static_cast<double>(c.at("kWords"));
  const double row = c.at("kShared") ? 6.2 : 5.2;  // cells per clock, long models
  return {.registers = 64,
          .covered_length = static_cast<int>(c.at("kWords")) * 4,
          .cells_per_clock_per_sm = row * n / (n + 100.0),
          .binding_resource = "integer pipe",
          .placement = placement_name(c.at("kShared") != 0)};
}

}  // namespace warp_sync

// ---- warp_striped and sequence groups
// -------------------------------------------------------------

constexpr paper::StripedDesign kStriped{.cells = 128,
                                        .table_rows = 30,
                                        .dp_rows = 1,
                                        .fixed_registers = 44,
                                        .most_gathered = 14,
                                        .gathered_registers = 128,
                                        .rate = 11.0,
                                        .gathered_rate = 2.8};
constexpr std::array<std::string_view, 1> kStripedReferences{
    "Jiang & Ganesan 2016, CUDAMPF, BMC Bioinformatics 17:106"};
constexpr std::array<std::string_view, 1> kGroupReferences{
    "Jiang, Ganesan & Yao 2017, CUDAMPF++, arXiv:1707.09683"};

const std::array kVariants{
    KernelVariant{.name = "multi_lane_half",
                  .stage = Stage::kMsv,
                  .template_file = "msv/multi_lane.cu",
                  .entry_name = "msv_multi_lane",
                  .cell = CellType::kHalf,
                  .accepts = multi_lane::accepts<multi_lane::Form::kHalf>,
                  .constants = multi_lane::constants<multi_lane::Form::kHalf>,
                  .launch_shape = multi_lane::launch_shape,
                  .expected = multi_lane::expected,
                  .references = multi_lane::kReferences,
                  .summary = "S sequences per warp, half-precision cells, B raised on demand"},
    KernelVariant{
        .name = "multi_lane_word",
        .stage = Stage::kMsv,
        .template_file = "msv/multi_lane.cu",
        .entry_name = "msv_multi_lane",
        .cell = CellType::kWord,
        .accepts = multi_lane::accepts<multi_lane::Form::kInteger>,
        .constants = multi_lane::constants<multi_lane::Form::kInteger>,
        .launch_shape = multi_lane::launch_shape,
        .expected = multi_lane::expected,
        .references = multi_lane::kReferences,
        .summary = "S sequences per warp, 16-bit integer cells (DPX), B raised on demand"},
    paper::striped_entry<kStriped, paper::StripedForm::kRegisters>(
        {.name = "warp_striped",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/warp_striped.cu",
         .entry_name = "msv_warp_striped",
         .cell = CellType::kByte,
         .references = kStripedReferences,
         .summary = "a warp per sequence, striped, unrolled by Q, DP row in registers"}),
    paper::striped_entry<kStriped, paper::StripedForm::kLocal>(
        {.name = "warp_striped_local",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/warp_striped.cu",
         .entry_name = "msv_warp_striped",
         .cell = CellType::kByte,
         .references = kStripedReferences,
         .summary = "a warp per sequence, striped, Q at run time, DP row in local memory"}),
    paper::striped_entry<kStriped, paper::StripedForm::kShared>(
        {.name = "warp_striped_shared",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/warp_striped.cu",
         .entry_name = "msv_warp_striped",
         .cell = CellType::kByte,
         .references = kStripedReferences,
         .summary = "a warp per sequence, striped, unrolled by Q, DP row in shared memory"}),
    paper::striped_entry<kStriped, paper::StripedForm::kSharedStatic>(
        {.name = "warp_striped_shared_static",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/warp_striped.cu",
         .entry_name = "msv_warp_striped",
         .cell = CellType::kByte,
         .references = kStripedReferences,
         .summary = "a warp per sequence, striped, Q at run time, DP row in shared memory"}),
    paper::group_entry<1>(
        {.name = "multi_lane_s1",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "1 sequence per warp, 128 byte cells each, the paper's form"}),
    paper::group_entry<2>(
        {.name = "multi_lane_s2",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "2 sequences per warp, 64 byte cells each, the paper's form"}),
    paper::group_entry<4>(
        {.name = "multi_lane_s4",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "4 sequences per warp, 32 byte cells each, the paper's form"}),
    paper::group_entry<8>(
        {.name = "multi_lane_s8",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "8 sequences per warp, 16 byte cells each, the paper's form"}),
    paper::group_entry<16>(
        {.name = "multi_lane_s16",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "16 sequences per warp, 8 byte cells each, the paper's form"}),
    paper::group_entry<32>(
        {.name = "multi_lane_s32",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "32 sequences per warp, 4 byte cells each, the paper's form"}),
    paper::group_entry<64>(
        {.name = "multi_lane_s64",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "64 sequences per warp, 2 byte cells each, the paper's form"}),
    paper::group_entry<128>(
        {.name = "multi_lane_s128",
         .stage = Stage::kMsv,
         .template_file = "paper_designs/msv/sequence_groups.cu",
         .entry_name = "msv_sequence_groups",
         .cell = CellType::kByte,
         .references = kGroupReferences,
         .summary = "128 sequences per warp, 1 byte cell each, the paper's form"}),
    KernelVariant{.name = "warp_sync",
                  .stage = Stage::kMsv,
                  .template_file = "paper_designs/msv/warp_sync.cu",
                  .entry_name = "msv_warp_sync",
                  .cell = CellType::kByte,
                  .competes = false,
                  .accepts = warp_sync::accepts<true>,
                  .constants = warp_sync::constants<true>,
                  .launch_shape = warp_sync::launch_shape,
                  .expected = warp_sync::expected,
                  .references = warp_sync::kReferences,
                  .summary = "a warp per sequence, DP rows and model in shared memory"},
    KernelVariant{.name = "warp_sync_global",
                  .stage = Stage::kMsv,
                  .template_file = "paper_designs/msv/warp_sync.cu",
                  .entry_name = "msv_warp_sync",
                  .cell = CellType::kByte,
                  .competes = false,
                  .accepts = warp_sync::accepts<false>,
                  .constants = warp_sync::constants<false>,
                  .launch_shape = warp_sync::launch_shape,
                  .expected = warp_sync::expected,
                  .references = warp_sync::kReferences,
                  .summary = "a warp per sequence, DP rows in shared, model in global memory"},
    KernelVariant{.name = "thread_coalesced",
                  .stage = Stage::kMsv,
                  .template_file = "paper_designs/msv/thread_speculative.cu",
                  .entry_name = "msv_thread_speculative",
                  .cell = CellType::kByte,
                  .competes = false,
                  .accepts = thread_speculative::accepts,
                  .constants = thread_speculative::constants<false>,
                  .launch_shape = thread_speculative::launch_shape,
                  .expected = thread_speculative::expected,
                  .references = thread_speculative::kReferences,
                  .summary = "a thread per sequence, its DP row interleaved in memory"},
    KernelVariant{.name = "thread_speculative",
                  .stage = Stage::kMsv,
                  .template_file = "paper_designs/msv/thread_speculative.cu",
                  .entry_name = "msv_thread_speculative",
                  .cell = CellType::kByte,
                  .competes = false,
                  .accepts = thread_speculative::accepts,
                  .constants = thread_speculative::constants<true>,
                  .launch_shape = thread_speculative::launch_shape,
                  .expected = thread_speculative::expected,
                  .references = thread_speculative::kReferences,
                  .summary = "a thread per sequence, two rows per pass with B speculated"},
};

}  // namespace

std::span<const KernelVariant> msv_variants() { return kVariants; }

}  // namespace hmmjit::plan
