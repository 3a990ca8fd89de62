#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

/// Sustained rate of the whole device, counting only real cells.
double predict_gcups(const Expected& expected, const DeviceTraits& device, int model_length) {
  const double covered_gcups = expected.cells_per_clock_per_sm * device.sm_count *
                               (static_cast<double>(device.clock_khz) * 1e3) / 1e9;
  return expected.padded ? covered_gcups * model_length / expected.covered_length : covered_gcups;
}

/// A catalogue entry's offer for a shape.
Offer offer_of(const KernelVariant& variant, const ModelShape& shape, const DeviceTraits& device) {
  Offer offer{&variant, variant.accepts(shape, device), {}};
  if (!offer.verdict.accepted) return offer;
  for (Constants& constants : variant.constants(shape, device)) {
    Candidate c;
    c.expected = variant.expected(shape, constants, device);
    c.constants = std::move(constants);
    offer.configurations.push_back(std::move(c));
  }
  return offer;
}

/// The configurations that fit the device; if there are none, `why` receives the reason.
std::vector<Candidate> candidates_of(Offer& offer, const Plan& plan, std::string& why) {
  std::vector<Candidate> out;
  if (!offer.verdict.accepted) {
    why = offer.verdict.reason;
    return out;
  }
  for (Candidate& c : offer.configurations) {
    c.variant = offer.variant;
    c.occupancy = occupancy(plan.device, c.expected.launch.block_threads, c.expected.registers,
                            c.expected.launch.dynamic_shared_bytes);
    if (c.occupancy.blocks_per_sm == 0) {
      why = fmt::format("does not fit: {} threads x {} registers, {} bytes of shared memory ({})",
                        c.expected.launch.block_threads, c.expected.registers,
                        c.expected.launch.dynamic_shared_bytes, c.occupancy.limiter);
      continue;
    }
    c.predicted_gcups = predict_gcups(c.expected, plan.device, plan.model_length);
    out.push_back(std::move(c));
  }
  if (out.empty() && why.empty()) {
    why = plan.stage == Stage::kHost ? "offers no configuration for this problem"
                                     : "offers no configuration for this model length";
  }
  return out;
}

/// The register words of DP state per lane that cover the model: H = ceil(M / W) rows of W cells. A
/// variant whose rows are not in registers counts as covering the model one word at a time.
int words_of(const Candidate& candidate) {
  const Expected& e = candidate.expected;
  return e.row_words > 0 ? e.row_words : e.covered_length;
}

/// CUDAMPF++, equation 4: the largest S whose H stays within Hmax; equation 5: the smallest H that
/// covers the model with that S. Hmax is the number of words that fit into a lane's registers while
/// kResidentWarps warps stay on an SM (the resource exhaustion in the paper's title). A candidate
/// whose launch bound grants more registers has exceeded Hmax, because the catalogue raises the
/// bound only if the words require it.
struct CudampfppRank {
  bool fits = false;
  int sequences = 1, words = 0;
};

CudampfppRank cudampfpp_rank(const Candidate& candidate, const DeviceTraits& device) {
  constexpr int kResidentWarps = 16;
  const int budget =
      std::min(device.max_registers_per_thread, device.registers_per_sm / (kResidentWarps * 32));
  return {.fits = candidate.expected.registers <= budget,
          .sequences = candidate.expected.sequences_per_warp,
          .words = words_of(candidate)};
}

void order(std::vector<Candidate>& candidates, Policy policy, const DeviceTraits& device) {
  if (policy == Policy::kDefault) {
    std::ranges::stable_sort(candidates, std::greater{}, &Candidate::predicted_gcups);
    return;
  }
  std::ranges::stable_sort(candidates, [&](const Candidate& a, const Candidate& b) {
    const CudampfppRank x = cudampfpp_rank(a, device), y = cudampfpp_rank(b, device);
    if (x.fits != y.fits) return x.fits;
    // If nothing fits the budget, the fewest sequences need the fewest registers.
    if (x.sequences != y.sequences)
      return x.fits ? x.sequences > y.sequences : x.sequences < y.sequences;
    return x.words < y.words;
  });
}

/// Moves the candidate that was measured best to the front of `competing` and returns the
/// measurement. Empty if there is none or the candidate no longer exists.
std::string prefer_tuned(const TuningTable& table, const Plan& plan,
                         std::vector<Candidate>& competing, std::vector<Candidate>& comparison) {
  const TunedChoice* choice = table.find(plan.stage, plan.class_length, plan.device);
  if (choice == nullptr) return {};
  for (std::vector<Candidate>* group : {&competing, &comparison}) {
    const auto found = std::ranges::find_if(*group, [&](const Candidate& c) {
      return c.variant->name == choice->variant && c.constants == choice->constants;
    });
    if (found == group->end()) continue;
    Candidate winner = std::move(*found);
    group->erase(found);
    competing.insert(competing.begin(), std::move(winner));
    return fmt::format("measured {:.0f} GCUPS over {} residues, the planner's own choice {:.0f}",
                       choice->gcups, choice->residues, choice->planned_gcups);
  }
  return {};
}

std::string outranked(const Candidate& best, const Plan& plan, Policy policy) {
  if (!plan.tuned.empty()) {
    return fmt::format("slower: predicted {:.0f} GCUPS ({}), but another was measured best",
                       best.predicted_gcups, best.expected.binding_resource);
  }
  if (policy == Policy::kCudampfpp) {
    return "slower: the CUDAMPF++ rule prefers more sequences per warp or a smaller H";
  }
  return fmt::format("slower: predicted {:.0f} {} ({}) against {:.0f}", best.predicted_gcups,
                     rate_unit(plan.stage), best.expected.binding_resource,
                     plan.chosen.predicted_gcups);
}

}  // namespace

int positions_served(const Candidate& candidate) {
  return candidate.expected.any_length ? kMostPositions : candidate.expected.covered_length;
}

int tiles_of(const Candidate& candidate, int model_length) {
  const int tile = candidate.expected.tile_length;
  return tile == 0 ? 1 : (model_length + tile - 1) / tile;
}

std::string_view rate_unit(Stage stage) {
  return stage == Stage::kHost ? "giga-items a second" : "GCUPS";
}

std::string_view policy_name(Policy policy) {
  return policy == Policy::kDefault ? "default" : "cudampfpp";
}

std::optional<Policy> find_policy(std::string_view name) {
  for (const Policy policy : {Policy::kDefault, Policy::kCudampfpp}) {
    if (policy_name(policy) == name) return policy;
  }
  if (name == "cudampf++") return Policy::kCudampfpp;
  return std::nullopt;
}

Result<Plan> make_plan(Stage stage, int model_length, int alphabet_codes,
                       const DeviceTraits& device, const PlanOptions& options) {
  const std::string where =
      fmt::format("{} plan, model length {}, {}", stage_name(stage), model_length, device.name);
  if (model_length < 1) {
    return fail(ErrorCode::kInput, "a model has at least one position", where);
  }
  if (model_length > kMostPositions) {
    return fail(
        ErrorCode::kInput,
        fmt::format("kernels are planned for models of at most {} positions", kMostPositions),
        where, "use the CPU search for this model");
  }
  if (const auto gap = compiler_gap(device)) {
    return fail(ErrorCode::kCompile, *gap, where, "use the CPU search on this machine");
  }

  Plan plan;
  plan.stage = stage;
  plan.model_length = model_length;
  plan.class_length = options.exact_length ? model_length : class_length(model_length);
  plan.alphabet_codes = alphabet_codes;
  plan.device = device;
  plan.policy = policy_name(options.policy);
  const ModelShape shape{
      .stage = stage, .length = plan.class_length, .alphabet_codes = alphabet_codes};

  std::vector<Offer> offers;
  for (const KernelVariant& variant : variants_of(stage)) {
    offers.push_back(offer_of(variant, shape, device));
    Offer& offer = offers.back();
    offer.competes = options.exact && variant.completes;
    if (options.exact && variant.speculates && offer.verdict.accepted)
      offer.verdict = Verdict::reject("leaves targets to another kernel of this stage");
  }
  HMMJIT_TRY(
      choose(plan, std::move(offers), options.policy, options.variant, where, options.tuned));
  return plan;
}

Status choose(Plan& plan, std::vector<Offer> offers, Policy policy,
              const std::string& forced_variant, const std::string& where,
              const TuningTable* tuned) {
  const auto names =
      offers | std::views::transform([](const Offer& offer) { return offer.variant->name; });
  if (!forced_variant.empty() && std::ranges::find(names, forced_variant) == names.end()) {
    return fail(ErrorCode::kUsage, fmt::format("no variant \"{}\"", forced_variant), where,
                offers.empty() ? std::string("this stage has no GPU variant")
                               : fmt::format("variants of this stage: {}", fmt::join(names, ", ")));
  }

  std::vector<Candidate> competing, comparison;
  for (Offer& offer : offers) {
    const KernelVariant& variant = *offer.variant;
    if (!forced_variant.empty() && variant.name != forced_variant) continue;
    std::string why;
    auto found = candidates_of(offer, plan, why);
    if (found.empty()) {
      plan.rejected.push_back({std::string(variant.name), why});
      continue;
    }
    const bool competes = variant.competes || offer.competes || !forced_variant.empty();
    auto& group = competes ? competing : comparison;
    std::ranges::move(found, std::back_inserter(group));
  }
  const bool only_comparison = competing.empty();
  if (only_comparison) competing.swap(comparison);
  if (competing.empty()) {
    std::string reasons;
    for (const Rejection& r : plan.rejected) {
      fmt::format_to(std::back_inserter(reasons), "; {}: {}", r.variant, r.reason);
    }
    return fail(forced_variant.empty() ? ErrorCode::kCompile : ErrorCode::kUsage,
                offers.empty() ? std::string("this stage has no GPU variant")
                               : "no variant accepts" + reasons,
                where);
  }

  order(competing, policy, plan.device);
  if (tuned != nullptr && policy == Policy::kDefault && forced_variant.empty()) {
    plan.tuned = prefer_tuned(*tuned, plan, competing, comparison);
  }
  plan.chosen = std::move(competing.front());
  competing.erase(competing.begin());
  plan.fallbacks = std::move(competing);
  // Comparison variants come last: they are slow, but better than no kernel.
  order(comparison, policy, plan.device);
  std::vector<std::string_view> listed{plan.chosen.variant->name};
  const auto explain = [&](const Candidate& c, const std::string& reason) {
    if (std::ranges::find(listed, c.variant->name) != listed.end()) return;
    listed.push_back(c.variant->name);
    plan.rejected.push_back({std::string(c.variant->name), reason});
  };
  for (const Candidate& c : plan.fallbacks) explain(c, outranked(c, plan, policy));
  for (Candidate& c : comparison) {
    explain(c, fmt::format("{}: predicted {:.0f} {}",
                           c.variant->completes ? "for undecided targets" : "only by name",
                           c.predicted_gcups, rate_unit(plan.stage)));
    plan.fallbacks.push_back(std::move(c));
  }
  return {};
}

}  // namespace hmmjit::plan
