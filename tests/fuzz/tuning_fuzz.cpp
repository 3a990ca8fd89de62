// Any lines of measured choices give a table whose text gives the same table.
#include "plan/tuning.hpp"
#include "tests/fuzz/entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hmmjit::plan;
  std::size_t skipped = 0;
  const auto table =
      TuningTable::parse({reinterpret_cast<const char*>(data), size}, "catalogue", &skipped);
  const std::string text = table.text();
  std::size_t lost = 0;
  const auto again = TuningTable::parse(text, "catalogue", &lost);
  require(lost == 0 && again.size() == table.size() && again.text() == text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace hmmjit::plan;
  TuningTable table;
  for (const int length : {32, 400}) {
    TunedChoice choice;
    choice.device = "NVIDIA H200";
    choice.capability = 90;
    choice.sm_count = 132;
    choice.catalogue = "catalogue";
    choice.class_length = length;
    choice.variant = "warp_stripes";
    choice.constants.add("kNodes", length);
    choice.constants.add("kThreads", 128);
    choice.gcups = 1234.5;
    choice.planned_gcups = 1e3;
    choice.targets = 1000;
    choice.residues = 350000;
    table.add(choice);
  }
  return {table.text(), "{}\n", "[1e999]\n"};
}

std::vector<std::string> fuzz_folders() { return {}; }
