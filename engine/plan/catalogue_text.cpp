#include <fmt/ranges.h>

#include <array>
#include <ranges>

#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

constexpr int kAminoCodes = 29;
// One device for each shared-memory size class of the table.
constexpr std::array<std::string_view, 3> kDevices = {"T4", "A100", "H200"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// The longest size class that the variant accepts, as text.
std::string longest_model(const KernelVariant& variant, const DeviceTraits& device) {
  int longest = 0;
  for (int length = 1; length <= kMostPositions; length = class_length(length) + 1) {
    const int padded = class_length(length);
    if (variant.accepts({variant.stage, padded, kAminoCodes}, device).accepted) longest = padded;
  }
  if (longest == 0) return "none";
  return longest >= kMostPositions ? std::string("any") : fmt::format("{}", longest);
}

// The variant's promise at a typical length.
std::string promise(const KernelVariant& variant, const DeviceTraits& device) {
  const ModelShape shape{variant.stage, class_length(256), kAminoCodes};
  if (!variant.accepts(shape, device).accepted) return "-";
  const std::vector<Constants> lists = variant.constants(shape, device);
  const Constants& constants = lists.front();
  const Expected expected = variant.expected(shape, constants, device);
  std::string out;
  for (const auto& [name, value] : constants.list())
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  const double rate = expected.cells_per_clock_per_sm;
  return fmt::format("`{}`; {} registers, {} cells per clock and SM, bound by {}", out,
                     expected.registers,
                     rate < 10 ? fmt::format("{:.2g}", rate) : fmt::format("{:.0f}", rate),
                     expected.binding_resource);
}

}  // namespace

std::string catalogue_text() {
  std::string out =
      "# Kernel catalogue\n\nMade from the entries in `engine/plan/variants/` by `hmmjit plan "
      "--catalogue`; a test compares the two.\nWithin a stage, the planner takes the entry with "
      "the highest predicted rate among those that accept the model and compete; in the\nsame way "
      "it takes one of Viterbi's exact entries for targets that the first leaves undecided. The "
      "others, designs of earlier\npapers and nhmmer's `multi_lane_blocks`, are chosen by name "
      "(`--variant NAME`), or where no entry that competes has a kernel for the\nmodel, such as "
      "MSV's of very long models.\n";
  for (int s = 0; s < kStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    if (variants_of(stage).empty()) continue;
    out += fmt::format("\n## {}\n", stage_name(stage));
    std::string others;
    for (const KernelVariant& variant : variants_of(stage)) {
      const auto lengths =
          kDevices | std::views::transform([&](std::string_view name) {
            return fmt::format("{} {}", name, longest_model(variant, *find_device(name)));
          });
      const std::string longest = fmt::format("{}", fmt::join(lengths, ", "));
      const std::string sources = fmt::format("{}", fmt::join(variant.references, "; "));
      if (!variant.competes && !variant.completes) {
        others +=
            fmt::format("| {} | {} | `{}` | {} | {} |\n", variant.name, escaped(variant.summary),
                        variant.template_file, longest, escaped(sources));
        continue;
      }
      out += fmt::format("\n### {}\n\n{}\n\n| | |\n|---|---|\n", variant.name,
                         escaped(variant.summary));
      const auto row = [&](std::string_view name, const std::string& value) {
        out += fmt::format("| {} | {} |\n", name, escaped(value));
      };
      row("template", fmt::format("`kernel_templates/{}`, kernel `{}`", variant.template_file,
                                  variant.entry_name));
      row("cells", std::string(cell_type_name(variant.cell)));
      row("chosen by",
          variant.competes ? "predicted rate" : "predicted rate, for undecided targets");
      row("longest model", longest);
      if (const auto device = find_device("H200")) row("H200, M = 256", promise(variant, *device));
      if (!sources.empty()) row("after", sources);
      if (!variant.compile_options.empty())
        row("compiled with", fmt::format("`{}`", fmt::join(variant.compile_options, "` `")));
    }
    if (!others.empty()) {
      out +=
          "\n### Others\n\n| name | summary | template | longest model | after |\n"
          "|---|---|---|---|---|\n" +
          others;
    }
  }
  return out;
}

}  // namespace hmmjit::plan
