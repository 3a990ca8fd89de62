// Parts of a search as large as one wishes, from a part of a small one: every hit is repeated,
// under names of its own, and the part is written once for each range of targets.
//
//   repeat_part PART COPIES RANGES FOLDER
//
// PART is the only part of its search (1/1), which was made with -Z and --domZ, so that what is
// reported does not depend on the number of targets. FOLDER gets RANGES parts, 1.hjpart and so on:
// the targets of PART so often, COPIES times in each.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "parts/part_reader.hpp"
#include "parts/part_writer.hpp"

namespace hmmjit::parts {
namespace {

// As many digits for each copy, so that the longest name is as much longer everywhere.
std::string suffix(std::uint64_t copy) { return fmt::format("_{:09}", copy); }

Status repeat(const std::string& path, std::uint64_t copies, std::uint32_t ranges,
              const std::string& folder) {
  HMMJIT_ASSIGN(const PartPtr part, PartFile::open(path));
  PartSettings settings = part->settings();
  if (part->place().part.of != 1 || !settings.thresholds.Z || !settings.thresholds.domZ)
    return fail(ErrorCode::kUsage, "not part 1/1 of a search with -Z and --domZ", path,
                "make it so");
  const std::uint64_t targets = settings.targets * copies;
  settings.targets = targets * ranges;
  settings.residues *= copies * ranges;
  settings.database_identity += copies * ranges;
  for (std::uint32_t range = 1; range <= ranges; ++range) {
    PartPlace place = part->place();
    place.part = {range, range, ranges};
    place.first_target = (range - 1) * targets;
    place.last_target = range * targets;
    HMMJIT_ASSIGN(PartWriter writer,
                  PartWriter::create(fmt::format("{}/{}.hjpart", folder, range), settings, place));
    PartCursor cursor(part);
    ModelHead head;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, cursor.next_model(head));
      if (!more) break;
      HMMJIT_TRY(cursor.begin_hits(head));
      FilterCounters& passed = head.counters;
      for (std::uint64_t* const count :
           {&passed.targets, &passed.residues, &passed.msv, &passed.bias, &passed.viterbi,
            &passed.forward, &head.candidates, &head.reported, &head.included})
        *count *= copies;
      for (std::uint64_t* const longest : {&head.longest_name, &head.longest_shown})
        if (*longest > 0) *longest += suffix(0).size();
      // Hits of equal score stand in the order of their names, so that all copies of a name follow
      // one another.
      Hit original, hit;
      std::uint64_t copy = copies;
      const ModelThresholds thresholds = head.thresholds(settings.thresholds);
      const Status added = writer.add_model(head, [&]() -> Result<const Hit*> {
        if (copy == copies) {
          HMMJIT_ASSIGN(const bool found, cursor.next_hit(original));
          if (!found) return nullptr;
          judge_target(thresholds, *settings.thresholds.Z, original);
          judge_domains(thresholds.rules, *settings.thresholds.domZ, original);
          copy = 0;
        }
        hit = original;
        hit.name += suffix((range - 1) * copies + copy);
        hit.index = place.first_target + copy * part->settings().targets + original.index;
        ++copy;
        return &hit;
      });
      HMMJIT_TRY(added);
    }
    HMMJIT_ASSIGN([[maybe_unused]] const Digest content,
                  writer.finish(part->origin(), place.last_model, place.models));
  }
  return {};
}

}  // namespace
}  // namespace hmmjit::parts

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: repeat_part PART COPIES RANGES FOLDER\n");
    return 2;
  }
  const auto copies = std::strtoull(argv[2], nullptr, 10);
  const auto ranges = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  const auto done =
      hmmjit::parts::repeat(argv[1], std::max(copies, 1ull), std::max(ranges, 1u), argv[4]);
  if (done) return 0;
  fmt::print(stderr, "repeat_part: {}\n", done.error().to_string());
  return static_cast<int>(done.error().code);
}
