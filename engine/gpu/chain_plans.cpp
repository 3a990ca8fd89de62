#include "gpu/chain_plans.hpp"

#include <algorithm>

namespace hmmjit::gpu {
namespace {

struct LinkSpec {
  plan::Stage stage;
  bool exact;  // use only kernels that decide every target
  enum class Length { kAny, kCoarse, kViterbi, kRows, kFine } length;
  int priority;
  bool decides;
};

constexpr std::array<LinkSpec, kLinks> kLinkSpecs{{
    {plan::Stage::kSsv, false, LinkSpec::Length::kCoarse, 9, true},
    {plan::Stage::kMsv, false, LinkSpec::Length::kCoarse, 3, false},
    {plan::Stage::kBias, false, LinkSpec::Length::kAny, 8, true},
    {plan::Stage::kViterbi, false, LinkSpec::Length::kViterbi, 2, false},
    {plan::Stage::kViterbi, true, LinkSpec::Length::kCoarse, 7, true},
    {plan::Stage::kForward, false, LinkSpec::Length::kCoarse, 4, false},
    {plan::Stage::kGate, false, LinkSpec::Length::kAny, 8, true},
    // A compile of these takes two seconds, ten times as long as others, but models of all lengths
    // share it: they come right after the kernels that the most frequent class cannot do without.
    {plan::Stage::kParser, false, LinkSpec::Length::kRows, 44, false},
    {plan::Stage::kEnsemble, false, LinkSpec::Length::kRows, 45, false},
    {plan::Stage::kEnvelope, false, LinkSpec::Length::kRows, 46, false},
    {plan::Stage::kSsv, false, LinkSpec::Length::kFine, 0, false},
}};

const LinkSpec& spec_of(Link link) { return of_link(kLinkSpecs, link); }

int fine_length(int model_length) {
  int power = 32;
  while (2 * power <= model_length) power *= 2;
  if (model_length <= power) return power;
  return model_length <= power + power / 2 ? power + power / 2 : 2 * power;
}

// One class more than in other stages: on sm_90 a warp's registers hold rows of up to 1280
// positions, and the alternative, tiles, is slower.
int viterbi_length(int model_length) {
  constexpr int kMostInRegisters = 1280;
  const bool between = model_length > 1024 && model_length <= kMostInRegisters;
  return between ? kMostInRegisters : coarse_length(model_length);
}

// Length at which models share a kernel of the link, except for kRows.
int shared_length(Link link, int model_length) {
  switch (spec_of(link).length) {
    case LinkSpec::Length::kAny:
      return 1;
    case LinkSpec::Length::kCoarse:
      return coarse_length(model_length);
    case LinkSpec::Length::kViterbi:
      return viterbi_length(model_length);
    case LinkSpec::Length::kFine:
      return fine_length(model_length);
    case LinkSpec::Length::kRows:
      break;
  }
  return model_length;
}

// Rows are in shared memory, and a launch gives each model what its own length needs. The longest
// class for which a device has room therefore serves all models whose rows leave room for as many
// targets per warp: they share launches and one compile.
int shared_rows_length(Link link, int model_length, int alphabet_codes,
                       const plan::DeviceTraits& device) {
  const auto own = link_plan(link, model_length, alphabet_codes, device, nullptr);
  if (!own) return model_length;
  const int covered = own->chosen.expected.covered_length;
  int longest = covered;
  while (plan::class_length(longest) > covered) --longest;
  return std::max(plan::class_length(longest), model_length);
}

}  // namespace

plan::Stage link_stage(Link link) { return spec_of(link).stage; }
bool is_filter(Link link) { return std::ranges::find(kDomainLinks, link) == kDomainLinks.end(); }
bool link_decides(Link link) { return spec_of(link).decides; }
int link_priority(Link link, int model_length) {
  const LinkSpec& spec = spec_of(link);
  if (!spec.decides) return spec.priority;
  // Half of Pfam's models have 64 to 256 positions.
  const int length = shared_length(link, model_length);
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

std::vector<int> link_lengths(Link link, int model_length, int alphabet_codes,
                              const plan::DeviceTraits& device) {
  const LinkSpec::Length kind = spec_of(link).length;
  const int shared = kind == LinkSpec::Length::kRows
                         ? shared_rows_length(link, model_length, alphabet_codes, device)
                         : shared_length(link, model_length);
  if (shared == model_length || kind == LinkSpec::Length::kAny) return {shared};
  return {shared, model_length};
}

Result<plan::Plan> link_plan(Link link, int length, int alphabet_codes,
                             const plan::DeviceTraits& device, const plan::TuningTable* tuned) {
  const LinkSpec& spec = spec_of(link);
  plan::PlanOptions options;
  options.exact = spec.exact;
  options.tuned = tuned;
  return plan::make_plan(spec.stage, length, alphabet_codes, device, options);
}

std::vector<plan::Plan> search_plans(int model_length, int alphabet_codes,
                                     const plan::DeviceTraits& device,
                                     const plan::TuningTable* tuned) {
  model_length = plan::class_length(model_length);  // as in a search: one plan per class
  std::vector<plan::Plan> out;
  for (std::size_t i = 0; i < kLinks; ++i) {
    const auto link = static_cast<Link>(i);
    if (link == Link::kFineSsv) continue;  // kSsv, for this class, stands for both
    const std::vector<int> lengths = link == Link::kSsv
                                         ? std::vector{model_length}
                                         : link_lengths(link, model_length, alphabet_codes, device);
    for (const int length : lengths) {
      auto plan = link_plan(link, length, alphabet_codes, device, tuned);
      if (!plan) continue;
      out.push_back(*std::move(plan));
      break;
    }
    if (out.empty()) break;  // SSV comes first
  }
  return out;
}

}  // namespace hmmjit::gpu
