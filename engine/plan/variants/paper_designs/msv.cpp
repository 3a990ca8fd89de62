// The designs of earlier papers for the MSV stage.
#include <fmt/format.h>

#include <array>

#include "plan/variants/paper_designs/designs.hpp"
#include "plan/variants/paper_designs/entries.hpp"

namespace hmmjit::plan::paper {
namespace {

constexpr StripedDesign kStriped{.cells = 128,
                                 .table_rows = 30,
                                 .dp_rows = 1,
                                 .fixed_registers = 44,
                                 .most_gathered = 14,
                                 .gathered_registers = 128,
                                 .rate = 11.0,
                                 .gathered_rate = 2.8};

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

template <bool kSpeculate>
constexpr KernelVariant entry() {
  return {.name = kSpeculate ? "thread_speculative" : "thread_coalesced",
          .stage = Stage::kMsv,
          .template_file = "paper_designs/msv/thread_speculative.cu",
          .entry_name = "msv_thread_speculative",
          .cell = CellType::kByte,
          .competes = false,
          .accepts = accepts,
          .constants = constants<kSpeculate>,
          .launch_shape = launch_shape,
          .expected = expected,
          .references = kReferences,
          .summary = kSpeculate ? "a thread per sequence, two rows per pass with B speculated"
                                : "a thread per sequence, its DP row interleaved in memory"};
}

}  // namespace thread_speculative

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

template <bool kTable>
constexpr KernelVariant entry() {
  return {.name = kTable ? "warp_sync" : "warp_sync_global",
          .stage = Stage::kMsv,
          .template_file = "paper_designs/msv/warp_sync.cu",
          .entry_name = "msv_warp_sync",
          .cell = CellType::kByte,
          .competes = false,
          .accepts = accepts<kTable>,
          .constants = constants<kTable>,
          .launch_shape = launch_shape,
          .expected = expected,
          .references = kReferences,
          .summary = kTable ? "a warp per sequence, DP rows and model in shared memory"
                            : "a warp per sequence, DP rows in shared, model in global memory"};
}

}  // namespace warp_sync

const std::array kStripedEntries = striped_entries<kStriped>(
    Stage::kMsv, "paper_designs/msv/warp_striped.cu", "msv_warp_striped", CellType::kByte);
const std::array kGroupEntries =
    group_entries(Stage::kMsv, "paper_designs/msv/sequence_groups.cu", "msv_sequence_groups");
const std::array kOtherEntries{warp_sync::entry<true>(), warp_sync::entry<false>(),
                               thread_speculative::entry<false>(),
                               thread_speculative::entry<true>()};

}  // namespace

std::span<const KernelVariant> msv_entries() {
  static const auto all = joined({kStripedEntries, kGroupEntries, kOtherEntries});
  return all;
}

}  // namespace hmmjit::plan::paper
