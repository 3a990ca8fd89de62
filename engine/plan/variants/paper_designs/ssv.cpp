// The designs of earlier papers for the SSV stage.

#include <array>

#include "plan/variants/paper_designs/designs.hpp"
#include "plan/variants/paper_designs/entries.hpp"

namespace hmmjit::plan::paper {
namespace {

constexpr StripedDesign kStriped{.cells = 128,
                                 .table_rows = 32,
                                 .dp_rows = 1,
                                 .fixed_registers = 56,
                                 .most_gathered = 40,
                                 .gathered_registers = 255,
                                 .rate = 13.5,
                                 .gathered_rate = 4.3};

const std::array kStripedEntries = striped_entries<kStriped>(
    Stage::kSsv, "paper_designs/ssv/warp_striped.cu", "ssv_warp_striped", CellType::kByte);
const std::array kGroupEntries =
    group_entries(Stage::kSsv, "paper_designs/ssv/sequence_groups.cu", "ssv_sequence_groups");

}  // namespace

std::span<const KernelVariant> ssv_entries() {
  static const auto all = joined({kStripedEntries, kGroupEntries});
  return all;
}

}  // namespace hmmjit::plan::paper
