// The designs of earlier papers for the Viterbi stage.
#include <fmt/format.h>

#include <array>

#include "plan/variants/paper_designs/designs.hpp"
#include "plan/variants/paper_designs/entries.hpp"

namespace hmmjit::plan::paper {
namespace {

constexpr StripedDesign kStriped{.cells = 64,
                                 .table_rows = 38,
                                 .dp_rows = 3,
                                 .fixed_registers = 60,
                                 .most_gathered = 20,
                                 .gathered_registers = 255,
                                 .rate = 2.0,
                                 .gathered_rate = 0.7};

constexpr int kWarp = 32;

namespace thread_coalesced {

constexpr std::array<std::string_view, 1> kReferences{
    "Walters, Balu, Kompalli & Chaudhary 2009, hmmsearch on GPUs"};
constexpr int kThreads = 128;
constexpr int kMostNodes = 80000;  // 512 KiB of local memory a thread, less what calls need

int words(const ModelShape& shape) { return (shape.length + 1) / 2; }
int row_bytes(int words) { return 12 * words; }

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (shape.length > kMostNodes) {
    return Verdict::reject(
        fmt::format("DP rows of more than {} nodes exceed a thread's local memory", kMostNodes));
  }
  // The driver reserves local memory for every thread the device can hold.
  const std::int64_t all =
      std::int64_t{row_bytes(words(shape))} * device.max_threads_per_sm * device.sm_count;
  if (all > device.memory_bytes / 2) {
    return Verdict::reject(
        fmt::format("DP rows of {} bytes for every resident thread take {} of "
                    "the {} bytes of device memory",
                    row_bytes(words(shape)), all, device.memory_bytes));
  }
  return Verdict::accept();
}
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits&) {
  return {{{"kWords", words(shape)}, {"kThreads", kThreads}}};
}
LaunchShape launch_shape(const ModelShape&, const Constants&, const DeviceTraits&) {
  return {.block_threads = kThreads};
}
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto n = static_cast<int>(c.at("kWords"));
  return {.registers = 96,
          .covered_length = 2 * n,
          .cells_per_clock_per_sm = 0.09,
          .local_bytes = row_bytes(n) + 64,
          .binding_resource = "local memory traffic"};
}

}  // namespace thread_coalesced

namespace warp_sync {

constexpr std::array<std::string_view, 1> kReferences{
    "Jiang & Ganesan 2015, fine-grained acceleration of HMMER 3.0 via warp synchronisation"};
constexpr int kTableScores = 38;  // rows: symbols and transitions

int nodes(const ModelShape& shape) { return (shape.length + kWarp - 1) / kWarp * kWarp; }
std::int64_t shared_bytes(std::int64_t n, bool table, std::int64_t threads) {
  return 2 * ((table ? kTableScores * n : 0) + threads / kWarp * 6 * (n + 2));
}

template <bool kTable>
std::vector<Constants> constants(const ModelShape& shape, const DeviceTraits& device) {
  const int n = nodes(shape);
  for (const int threads : {512, 256, 128, 64, 32}) {
    if (shared_bytes(n, kTable, threads) > device.shared_per_block_limit) continue;
    return {{{"kNodes", n}, {"kShared", kTable ? 1 : 0}, {"kThreads", threads}}};
  }
  return {};
}
template <bool kTable>
Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (!constants<kTable>(shape, device).empty()) return Verdict::accept();
  return Verdict::reject(fmt::format("six DP rows of {} bytes{} exceed {} bytes of shared memory",
                                     2 * nodes(shape), kTable ? " and the score table" : "",
                                     device.shared_per_block_limit));
}
LaunchShape launch_shape(const ModelShape&, const Constants& c, const DeviceTraits&) {
  return {
      .block_threads = static_cast<int>(c.at("kThreads")),
      .dynamic_shared_bytes = shared_bytes(c.at("kNodes"), c.at("kShared") != 0, c.at("kThreads"))};
}
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  return {.registers = 64,
          .covered_length = static_cast<int>(c.at("kNodes")),
          .cells_per_clock_per_sm = c.at("kShared") ? 0.5 : 0.35,
          .binding_resource = "shared memory latency",
          .placement = placement_name(c.at("kShared") != 0)};
}

template <bool kTable>
constexpr KernelVariant entry() {
  return {.name = kTable ? "warp_sync" : "warp_sync_global",
          .stage = Stage::kViterbi,
          .template_file = "paper_designs/viterbi/warp_sync.cu",
          .entry_name = "viterbi_warp_sync",
          .cell = CellType::kWord,
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

const std::array kStripedEntries =
    striped_entries<kStriped>(Stage::kViterbi, "paper_designs/viterbi/warp_striped.cu",
                              "viterbi_warp_striped", CellType::kWord);
const std::array kOtherEntries{
    warp_sync::entry<true>(),
    warp_sync::entry<false>(),
    KernelVariant{.name = "thread_coalesced",
                  .stage = Stage::kViterbi,
                  .template_file = "paper_designs/viterbi/thread_coalesced.cu",
                  .entry_name = "viterbi_thread_coalesced",
                  .cell = CellType::kWord,
                  .competes = false,
                  .accepts = thread_coalesced::accepts,
                  .constants = thread_coalesced::constants,
                  .launch_shape = thread_coalesced::launch_shape,
                  .expected = thread_coalesced::expected,
                  .references = thread_coalesced::kReferences,
                  .summary = "a thread per sequence, its DP rows interleaved in memory"},
};

}  // namespace

std::span<const KernelVariant> viterbi_entries() {
  static const auto all = joined({kStripedEntries, kOtherEntries});
  return all;
}

}  // namespace hmmjit::plan::paper
