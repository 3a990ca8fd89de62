#include "gpu/chain_plans.hpp"

#include <array>

namespace hmmjit::gpu {
namespace {

// Of the Viterbi kernels those that need no memory of a size that grows with the targets
// (wavefront_tiled) or with the grid (row_scan): what they do not take is the CPU's.
struct LinkSpec {
  plan::Stage stage;
  const char* variant;  // forced; null: the planner's choice
  enum class Length { kAny, kCoarse, kRows, kFine } length;
  int priority;
  bool decides;
};

constexpr std::array<LinkSpec, kLinks> kLinkSpecs{{
    {plan::Stage::kSsv, nullptr, LinkSpec::Length::kCoarse, 9, true},
    {plan::Stage::kMsv, nullptr, LinkSpec::Length::kCoarse, 3, false},
    {plan::Stage::kBias, nullptr, LinkSpec::Length::kAny, 8, true},
    {plan::Stage::kViterbi, "wavefront", LinkSpec::Length::kCoarse, 2, false},
    {plan::Stage::kViterbi, "lane_scan", LinkSpec::Length::kCoarse, 7, true},
    {plan::Stage::kForward, nullptr, LinkSpec::Length::kCoarse, 4, false},
    {plan::Stage::kGate, nullptr, LinkSpec::Length::kAny, 8, true},
    {plan::Stage::kParser, nullptr, LinkSpec::Length::kRows, 1, false},
    {plan::Stage::kEnsemble, nullptr, LinkSpec::Length::kRows, 1, false},
    {plan::Stage::kEnvelope, nullptr, LinkSpec::Length::kRows, 1, false},
    {plan::Stage::kSsv, nullptr, LinkSpec::Length::kFine, 0, false},
}};

const LinkSpec& spec_of(Link link) { return of_link(kLinkSpecs, link); }

int fine_length(int model_length) {
  int power = 32;
  while (2 * power <= model_length) power *= 2;
  if (model_length <= power) return power;
  return model_length <= power + power / 2 ? power + power / 2 : 2 * power;
}

// Rows in shared memory: few classes, as padding costs shared memory only, never time.
int rows_length(int model_length) {
  for (const int length : {256, 704, 896, 1408}) {
    if (model_length <= length) return length;
  }
  return model_length;
}

}  // namespace

plan::Stage link_stage(Link link) { return spec_of(link).stage; }
bool link_decides(Link link) { return spec_of(link).decides; }
int link_priority(Link link, int model_length) {
  const LinkSpec& spec = spec_of(link);
  if (!spec.decides) return spec.priority;
  // Half of Pfam's models have 64 to 256 positions.
  const int length = link_lengths(link, model_length).front();
  const bool any = spec.length == LinkSpec::Length::kAny;
  const int likely = any || length == 256            ? 4
                     : length == 128                 ? 3
                     : length == 64 || length == 512 ? 2
                                                     : 1;
  return 10 * likely + spec.priority;
}

int coarse_length(int model_length) {
  if (model_length > 2048) return (model_length + 511) / 512 * 512;
  if (model_length > 1024) return model_length > 1536 ? 2048 : 1536;
  int power = 64;
  while (power < model_length) power *= 2;
  return power;
}

std::vector<int> link_lengths(Link link, int model_length) {
  int shared = 0;
  switch (spec_of(link).length) {
    case LinkSpec::Length::kAny:
      return {1};
    case LinkSpec::Length::kCoarse:
      shared = coarse_length(model_length);
      break;
    case LinkSpec::Length::kRows:
      shared = rows_length(model_length);
      break;
    case LinkSpec::Length::kFine:
      shared = fine_length(model_length);
  }
  if (shared == model_length) return {model_length};
  return {shared, model_length};
}

Result<plan::Plan> link_plan(Link link, int length, int alphabet_codes,
                             const plan::DeviceTraits& device, const plan::TuningTable* tuned) {
  const LinkSpec& spec = spec_of(link);
  plan::PlanOptions options;
  if (spec.variant != nullptr) options.variant = spec.variant;
  options.tuned = tuned;
  return plan::make_plan(spec.stage, length, alphabet_codes, device, options);
}

std::vector<plan::Plan> search_plans(int model_length, int alphabet_codes,
                                     const plan::DeviceTraits& device,
                                     const plan::TuningTable* tuned) {
  model_length = plan::class_length(model_length);  // as a search does: one plan for all of a class
  std::vector<plan::Plan> out;
  for (std::size_t i = 0; i < kLinks; ++i) {
    const auto link = static_cast<Link>(i);
    if (link == Link::kSsv) continue;  // kFineSsv, made for the class, stands for both
    const std::vector<int> lengths =
        link == Link::kFineSsv ? std::vector{model_length} : link_lengths(link, model_length);
    for (const int length : lengths) {
      auto plan = link_plan(link, length, alphabet_codes, device, tuned);
      if (!plan) continue;
      out.push_back(*std::move(plan));
      break;
    }
  }
  return out;
}

}  // namespace hmmjit::gpu
