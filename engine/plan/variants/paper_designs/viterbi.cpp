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

namespace thread_coalesced {

constexpr std::array<std::string_view, 1> kReferences{
    "Walters, Balu, Kompalli & Chaudhary 2009, hmmsearch on GPUs"};
constexpr int kThreads = 128;
constexpr int kMostNodes = 80000;  // 512 KiB of local memory per thread, minus that for calls

int words(const ModelShape& shape) { return (shape.length + 1) / 2; }
int row_bytes(int words) { return 12 * words; }

Verdict accepts(const ModelShape& shape, const DeviceTraits& device) {
  if (shape.length > kMostNodes) {
    return Verdict::reject(
        fmt::format("DP rows of more than {} nodes exceed a thread's local memory", kMostNodes));
  }
  // The driver reserves local memory for every thread that the device can hold.
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
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto n = static_cast<int>(c.at("kWords"));
  return {.launch = {kThreads},
          .registers = 96,
          .covered_length = 2 * n,
          .cells_per_clock_per_sm = 0.09,
          .local_bytes = row_bytes(n) + 64,
          .binding_resource = "local memory traffic"};
}

}  // namespace thread_coalesced

constexpr SyncDesign kSync{.word = "kNodes",
                           .cells_per_word = 1,
                           .bytes_per_word = 2,
                           .table_rows = 38,
                           .dp_rows = 6,
                           .padding = 2,
                           .rows = "six",
                           .table = "score",
                           .threads = {512, 256, 128, 64, 32},
                           .rate = 0.5,
                           .global_rate = 0.35,
                           .half_rate_words = 0,
                           .binding_resource = "shared memory latency"};

const std::array kStripedEntries =
    striped_entries<kStriped>(Stage::kViterbi, "paper_designs/viterbi/warp_striped.cu",
                              "viterbi_warp_striped", CellType::kWord);
const std::array kSyncEntries = sync_entries<kSync>(
    Stage::kViterbi, "paper_designs/viterbi/warp_sync.cu", "viterbi_warp_sync", CellType::kWord);
const std::array kOtherEntries{
    KernelVariant{.name = "thread_coalesced",
                  .stage = Stage::kViterbi,
                  .template_file = "paper_designs/viterbi/thread_coalesced.cu",
                  .entry_name = "viterbi_thread_coalesced",
                  .cell = CellType::kWord,
                  .competes = false,
                  .accepts = thread_coalesced::accepts,
                  .constants = thread_coalesced::constants,
                  .expected = thread_coalesced::expected,
                  .references = thread_coalesced::kReferences,
                  .summary = "a thread per sequence, its DP rows interleaved in memory"},
};

}  // namespace

std::span<const KernelVariant> viterbi_entries() {
  static const auto all = joined({kStripedEntries, kSyncEntries, kOtherEntries});
  return all;
}

}  // namespace hmmjit::plan::paper
