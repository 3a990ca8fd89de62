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
                                 .fixed_registers = 50,
                                 .most_gathered = 14,
                                 .gathered_registers = 128,
                                 .rate = 11.0,
                                 .gathered_rate = 2.8};

namespace thread_speculative {

constexpr std::array<std::string_view, 2> kReferences{
    "Li, Chen & Sun 2012, speculative hmmsearch on GPU",
    "Walters, Balu, Kompalli & Chaudhary 2009, rows interleaved in global memory"};

constexpr int kThreads = 128;
constexpr int kMostNodes = 400000;  // 512 KiB of local memory per thread, minus that for calls

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
Expected expected(const ModelShape&, const Constants& c, const DeviceTraits&) {
  const auto n = static_cast<int>(c.at("kWords"));
  return {.launch = {kThreads},
          .registers = 96,
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
          .expected = expected,
          .references = kReferences,
          .summary = kSpeculate ? "a thread per sequence, two rows per pass with B speculated"
                                : "a thread per sequence, its DP row interleaved in memory"};
}

}  // namespace thread_speculative

constexpr SyncDesign kSync{.word = "kWords",
                           .cells_per_word = 4,
                           .bytes_per_word = 4,
                           .table_rows = 30,
                           .dp_rows = 2,
                           .padding = 1,
                           .rows = "two",
                           .table = "cost",
                           .threads = {512, 256, 128, 32},
                           .rate = 6.2,
                           .global_rate = 5.2,
                           .half_rate_words = 100,
                           .binding_resource = "integer pipe"};

const std::array kStripedEntries = striped_entries<kStriped>(
    Stage::kMsv, "paper_designs/msv/warp_striped.cu", "msv_warp_striped", CellType::kByte);
const std::array kGroupEntries =
    group_entries(Stage::kMsv, "paper_designs/msv/sequence_groups.cu", "msv_sequence_groups");
const std::array kSyncEntries = sync_entries<kSync>(Stage::kMsv, "paper_designs/msv/warp_sync.cu",
                                                    "msv_warp_sync", CellType::kByte);
const std::array kOtherEntries{thread_speculative::entry<false>(),
                               thread_speculative::entry<true>()};

}  // namespace

std::span<const KernelVariant> msv_entries() {
  static const auto all = joined({kStripedEntries, kGroupEntries, kSyncEntries, kOtherEntries});
  return all;
}

}  // namespace hmmjit::plan::paper
