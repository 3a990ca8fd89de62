// Designs of earlier papers that are used in several stages.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan::paper {

constexpr int kMostRegisters = 255;

// ---- warp_striped: CUDAMPF 2016 -----------------------------------------------------------------

/// Where a warp keeps its DP row, and whether the loop over the row is unrolled by Q
/// (kernel_templates/common/striped.cuh).
enum class StripedForm {
  kRegisters,     ///< unrolled by Q
  kLocal,         ///< Q at run time: an indexed row is in local memory
  kShared,        ///< unrolled by Q
  kSharedStatic,  ///< Q at run time
};

/// Parameters of the design in one stage.
struct StripedDesign {
  int cells;               ///< in a warp's vector
  int table_rows;          ///< 128 Q bytes each, in shared memory or gathered
  int dp_rows;             ///< likewise
  int fixed_registers;     ///< all except the DP rows, maximum over architectures
  int most_gathered;       ///< words whose gathered scores can be in flight without a spill
  int gathered_registers;  ///< upper bound for a kernel that gathers
  double rate, gathered_rate;  ///< cells per clock and SM for long models, rows in registers
};

constexpr int kStripedThreads = 256;

constexpr bool is_static(StripedForm form) {
  return form == StripedForm::kLocal || form == StripedForm::kSharedStatic;
}
constexpr bool rows_shared(StripedForm form) {
  return form == StripedForm::kShared || form == StripedForm::kSharedStatic;
}

template <const StripedDesign& kDesign>
int striped_words(const ModelShape& shape) {
  return (shape.length + kDesign.cells - 1) / kDesign.cells;
}

template <const StripedDesign& kDesign, StripedForm kForm>
std::int64_t striped_shared(std::int64_t q, bool table, std::int64_t threads) {
  return 128 * q *
         ((table ? kDesign.table_rows : 0) +
          (rows_shared(kForm) ? threads / 32 * kDesign.dp_rows : 0));
}

template <const StripedDesign& kDesign, StripedForm kForm>
std::vector<Constants> striped_constants(const ModelShape& shape, const DeviceTraits& device) {
  const int q = striped_words<kDesign>(shape);
  if (kForm == StripedForm::kRegisters &&
      kDesign.dp_rows * q + kDesign.fixed_registers > kMostRegisters) {
    return {};
  }
  int held = q;
  if (is_static(kForm)) {
    // Not specialised for Q: a few capacities serve all models.
    for (held = 8; held < q;) held *= 2;
  }
  std::vector<Constants> out;
  for (const bool table : {true, false}) {
    if (!table && !is_static(kForm) && q > kDesign.most_gathered) continue;
    for (const int threads : {kStripedThreads, 128, 64, 32}) {
      if (striped_shared<kDesign, kForm>(q, table, threads) > device.shared_per_block_limit) {
        continue;
      }
      out.push_back({{"kQ", held},
                     {"kShared", table ? 1 : 0},
                     {"kRows", rows_shared(kForm) ? 1 : 0},
                     {"kStatic", is_static(kForm) ? 1 : 0},
                     {"kThreads", threads}});
      break;
    }
  }
  return out;
}

template <const StripedDesign& kDesign, StripedForm kForm>
Verdict striped_accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!striped_constants<kDesign, kForm>(shape, device).empty()) return Verdict::accept();
  const int q = striped_words<kDesign>(shape);
  if (kForm == StripedForm::kRegisters &&
      kDesign.dp_rows * q + kDesign.fixed_registers > kMostRegisters) {
    return Verdict::reject(
        fmt::format("{} DP rows of {} registers per lane do not fit the {} a thread may have",
                    kDesign.dp_rows, q, kMostRegisters));
  }
  return Verdict::reject(fmt::format(
      "a score table of {} bytes exceeds the {} of a block's shared memory, and {} gathered words "
      "a row the registers; warp_striped_local takes it",
      striped_shared<kDesign, kForm>(q, true, 32), device.shared_per_block_limit, q));
}

template <const StripedDesign& kDesign, StripedForm kForm>
Expected striped_expected(const ModelShape& shape, const Constants& c, const DeviceTraits&) {
  const int q = striped_words<kDesign>(shape);
  const bool table = c.at("kShared") != 0;
  // Rows outside registers cost a load and a store per word; a loop adds its own instructions.
  constexpr double kFactor = kForm == StripedForm::kRegisters ? 1.0
                             : kForm == StripedForm::kShared  ? 0.8
                                                              : 0.55;
  int registers = kForm == StripedForm::kRegisters
                      ? (kDesign.dp_rows + 1) * q + kDesign.fixed_registers
                  : is_static(kForm) ? 64
                                     : 128;
  if (!table) registers = kDesign.gathered_registers;
  return {.launch = {static_cast<int>(c.at("kThreads")),
                     striped_shared<kDesign, kForm>(q, table, c.at("kThreads"))},
          .registers = std::min(registers, kMostRegisters),
          .covered_length = q * kDesign.cells,
          .row_words = static_cast<int>(c.at("kQ")),
          .cells_per_clock_per_sm =
              kFactor * (table ? kDesign.rate : kDesign.gathered_rate) * q / (q + 4.0),
          .local_bytes = kForm == StripedForm::kLocal
                             ? 4 * kDesign.dp_rows * static_cast<int>(c.at("kQ")) + 64
                             : 0,
          .binding_resource = table ? "integer pipe" : "emission gather",
          .placement = placement_name(table)};
}

inline constexpr std::array<std::string_view, 1> kStripedReferences{
    "Jiang & Ganesan 2016, CUDAMPF, BMC Bioinformatics 17:106"};

struct Names {
  std::string_view name, summary;
};
inline constexpr std::array<Names, 4> kStripedNames{{
    // by StripedForm
    {"warp_striped", "a warp per sequence, striped, unrolled by Q, DP row in registers"},
    {"warp_striped_local", "a warp per sequence, striped, Q at run time, DP row in local memory"},
    {"warp_striped_shared", "a warp per sequence, striped, unrolled by Q, DP row in shared memory"},
    {"warp_striped_shared_static",
     "a warp per sequence, striped, Q at run time, DP row in shared memory"},
}};

template <const StripedDesign& kDesign, StripedForm kForm>
constexpr KernelVariant striped_entry(Stage stage, std::string_view file, std::string_view entry,
                                      CellType cell) {
  const Names& names = kStripedNames[static_cast<std::size_t>(kForm)];
  return {.name = names.name,
          .stage = stage,
          .template_file = file,
          .entry_name = entry,
          .cell = cell,
          .competes = false,
          .accepts = striped_accepts<kDesign, kForm>,
          .constants = striped_constants<kDesign, kForm>,
          .expected = striped_expected<kDesign, kForm>,
          .references = kStripedReferences,
          .summary = names.summary};
}

/// The four forms of a stage.
template <const StripedDesign& kDesign>
constexpr std::array<KernelVariant, 4> striped_entries(Stage stage, std::string_view file,
                                                       std::string_view entry, CellType cell) {
  return {striped_entry<kDesign, StripedForm::kRegisters>(stage, file, entry, cell),
          striped_entry<kDesign, StripedForm::kLocal>(stage, file, entry, cell),
          striped_entry<kDesign, StripedForm::kShared>(stage, file, entry, cell),
          striped_entry<kDesign, StripedForm::kSharedStatic>(stage, file, entry, cell)};
}

// ---- warp_sync: Jiang & Ganesan 2015 ------------------------------------------------------------

/// Parameters of the design in one stage. A word holds the cells that a lane computes at once.
struct SyncDesign {
  std::string_view word;  ///< the constant that counts the words of a row
  int cells_per_word, bytes_per_word;
  int table_rows;                ///< of symbols, and of transitions
  int dp_rows, padding;          ///< words before and after a DP row
  std::string_view rows, table;  ///< their names in messages
  std::array<int, 5> threads;    ///< per block, best first; 0: none
  double rate, global_rate;      ///< cells per clock and SM for long models, by location
  double half_rate_words;        ///< number of words at which half of that rate is reached
  std::string_view binding_resource;
};

template <const SyncDesign& kDesign>
int sync_words(const ModelShape& shape) {
  constexpr int kStep = 32 * kDesign.cells_per_word;
  return (shape.length + kStep - 1) / kStep * 32;
}

template <const SyncDesign& kDesign>
std::int64_t sync_shared(std::int64_t words, bool table, std::int64_t threads) {
  return kDesign.bytes_per_word * ((table ? kDesign.table_rows * words : 0) +
                                   threads / 32 * kDesign.dp_rows * (words + kDesign.padding));
}

template <const SyncDesign& kDesign, bool kTable>
std::vector<Constants> sync_constants(const ModelShape& shape, const DeviceTraits& device) {
  const int words = sync_words<kDesign>(shape);
  for (const int threads : kDesign.threads) {
    if (threads == 0 ||
        sync_shared<kDesign>(words, kTable, threads) > device.shared_per_block_limit)
      continue;
    return {{{kDesign.word, words}, {"kShared", kTable ? 1 : 0}, {"kThreads", threads}}};
  }
  return {};
}

template <const SyncDesign& kDesign, bool kTable>
Verdict sync_accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!sync_constants<kDesign, kTable>(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format(
      "{} DP rows of {} bytes{}{}{} exceed {} bytes of shared memory", kDesign.rows,
      kDesign.bytes_per_word * sync_words<kDesign>(shape), kTable ? " and the " : "",
      kTable ? kDesign.table : "", kTable ? " table" : "", device.shared_per_block_limit));
}

template <const SyncDesign& kDesign>
Expected sync_expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto words = static_cast<int>(c.at(kDesign.word));
  const bool table = c.at("kShared") != 0;
  return {.launch = {static_cast<int>(c.at("kThreads")),
                     sync_shared<kDesign>(words, table, c.at("kThreads"))},
          .registers = 64,
          .covered_length = words * kDesign.cells_per_word,
          .cells_per_clock_per_sm = (table ? kDesign.rate : kDesign.global_rate) * words /
                                    (words + kDesign.half_rate_words),
          .binding_resource = kDesign.binding_resource,
          .placement = placement_name(table)};
}

inline constexpr std::array<std::string_view, 1> kSyncReferences{
    "Jiang & Ganesan 2015, fine-grained acceleration of HMMER 3.0 via warp synchronisation"};

template <const SyncDesign& kDesign, bool kTable>
constexpr KernelVariant sync_entry(Stage stage, std::string_view file, std::string_view entry,
                                   CellType cell) {
  return {.name = kTable ? "warp_sync" : "warp_sync_global",
          .stage = stage,
          .template_file = file,
          .entry_name = entry,
          .cell = cell,
          .competes = false,
          .accepts = sync_accepts<kDesign, kTable>,
          .constants = sync_constants<kDesign, kTable>,
          .expected = sync_expected<kDesign>,
          .references = kSyncReferences,
          .summary = kTable ? "a warp per sequence, DP rows and model in shared memory"
                            : "a warp per sequence, DP rows in shared, model in global memory"};
}

/// One entry with the model in shared memory, one in global memory.
template <const SyncDesign& kDesign>
constexpr std::array<KernelVariant, 2> sync_entries(Stage stage, std::string_view file,
                                                    std::string_view entry, CellType cell) {
  return {sync_entry<kDesign, true>(stage, file, entry, cell),
          sync_entry<kDesign, false>(stage, file, entry, cell)};
}

// ---- sequence groups: CUDAMPF++ 2017 ------------------------------------------------------------

constexpr int kGroupTableRows = 30;
constexpr int kGroupThreads = 256;

/// Number of words of a row that a lane's registers hold without spills on sm_75 to sm_120, next to
/// temporaries and the special states of each of its sequences.
constexpr int most_group_words(int sequences) {
  return sequences < 32 ? 104 : sequences == 32 ? 120 : sequences == 64 ? 112 : 104;
}
constexpr int group_registers(int sequences, int words) {
  return sequences > 32 ? kMostRegisters : std::min(kMostRegisters, 2 * words + 72);
}

/// Words per row with S sequences per warp: a multiple of the sequences that share a lane.
template <int kS>
int group_words(const ModelShape& shape) {
  constexpr int kCells = 128 / kS, kShared = std::max(1, kS / 32);
  const int words = (shape.length + kCells - 1) / kCells;
  return (words + kShared - 1) / kShared * kShared;
}

template <int kS>
std::int64_t group_table(std::int64_t words) {
  return kGroupTableRows * words * (128 / kS);
}

template <int kS>
Verdict group_accepts(const ModelShape& shape, const DeviceTraits& device) {
  const int words = group_words<kS>(shape);
  if (words > most_group_words(kS)) {
    return Verdict::reject(
        fmt::format("{} sequences a warp leave {} words of a row to a lane, more than the {} "
                    "its registers hold",
                    kS, words, most_group_words(kS)));
  }
  if (group_table<kS>(words) > device.shared_per_block_limit) {
    return Verdict::reject(
        fmt::format("a table of {} bytes exceeds the {} of a block's shared memory",
                    group_table<kS>(words), device.shared_per_block_limit));
  }
  return Verdict::accept();
}

template <int kS>
std::vector<Constants> group_constants(const ModelShape& shape, const DeviceTraits&) {
  return {{{"kS", kS}, {"kH", group_words<kS>(shape)}, {"kThreads", kGroupThreads}}};
}

template <int kS>
Expected group_expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto words = static_cast<int>(c.at("kH"));
  return {.launch = {kGroupThreads, group_table<kS>(words)},
          .registers = group_registers(kS, words),
          .covered_length = words * (128 / kS),
          .sequences_per_warp = kS,
          .row_words = words,
          .cells_per_clock_per_sm = 11.0 * words / (words + 4.0),
          .binding_resource = "integer pipe"};
}

inline constexpr std::array<std::string_view, 1> kGroupReferences{
    "Jiang, Ganesan & Yao 2017, CUDAMPF++, arXiv:1707.09683"};

inline constexpr std::array<Names, 8> kGroupNames{{
    // index: the binary logarithm of S
    {"multi_lane_s1", "1 sequence per warp, 128 byte cells each, the paper's form"},
    {"multi_lane_s2", "2 sequences per warp, 64 byte cells each, the paper's form"},
    {"multi_lane_s4", "4 sequences per warp, 32 byte cells each, the paper's form"},
    {"multi_lane_s8", "8 sequences per warp, 16 byte cells each, the paper's form"},
    {"multi_lane_s16", "16 sequences per warp, 8 byte cells each, the paper's form"},
    {"multi_lane_s32", "32 sequences per warp, 4 byte cells each, the paper's form"},
    {"multi_lane_s64", "64 sequences per warp, 2 byte cells each, the paper's form"},
    {"multi_lane_s128", "128 sequences per warp, 1 byte cell each, the paper's form"},
}};

template <int kS>
constexpr KernelVariant group_entry(Stage stage, std::string_view file, std::string_view entry) {
  const Names& names = kGroupNames[static_cast<std::size_t>(std::countr_zero(unsigned{kS}))];
  return {.name = names.name,
          .stage = stage,
          .template_file = file,
          .entry_name = entry,
          .cell = CellType::kByte,
          .competes = false,
          .accepts = group_accepts<kS>,
          .constants = group_constants<kS>,
          .expected = group_expected<kS>,
          .references = kGroupReferences,
          .summary = names.summary};
}

/// One entry for each number of sequences per warp.
constexpr std::array<KernelVariant, 8> group_entries(Stage stage, std::string_view file,
                                                     std::string_view entry) {
  return {group_entry<1>(stage, file, entry),  group_entry<2>(stage, file, entry),
          group_entry<4>(stage, file, entry),  group_entry<8>(stage, file, entry),
          group_entry<16>(stage, file, entry), group_entry<32>(stage, file, entry),
          group_entry<64>(stage, file, entry), group_entry<128>(stage, file, entry)};
}

}  // namespace hmmjit::plan::paper
