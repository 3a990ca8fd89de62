#include <fmt/format.h>

#include <cmath>

#include "core/json_object.hpp"
#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

std::string constants_text(const Constants& constants) {
  std::string out;
  for (const auto& [name, value] : constants.list()) {
    fmt::format_to(std::back_inserter(out), "{}{} {}", out.empty() ? "" : ", ", name, value);
  }
  return out;
}

/// Rounds to 1/scale; as a quotient of two integers the result prints without superfluous digits.
double rounded(double value, double scale) { return std::round(value * scale) / scale; }

void write_candidate(std::string& out, const Candidate& c) {
  JsonObject json(out);
  json.text("variant", c.variant->name);
  json.text("template", c.variant->template_file);
  json.text("entry", c.variant->entry_name);
  json.text("cell", cell_type_name(c.variant->cell));
  write_constants(json, c.constants);
  JsonObject launch = json.object("launch");
  launch.number("block_threads", c.expected.launch.block_threads);
  launch.text("grid", "persistent");
  launch.number("dynamic_shared_bytes", c.expected.launch.dynamic_shared_bytes);
  launch.close();
  JsonObject expected = json.object("expected");
  expected.number("registers", c.expected.registers);  // old name of the same value
  expected.number("registers_bound", c.expected.registers);
  expected.number("covered_length", c.expected.covered_length);
  expected.flag("padded", c.expected.padded && !c.expected.any_length);
  expected.number("cells_per_clock_per_sm", rounded(c.expected.cells_per_clock_per_sm, 1e3));
  expected.text("binding_resource", c.expected.binding_resource);
  expected.number("blocks_per_sm", c.occupancy.blocks_per_sm);
  expected.number("warps_per_sm", c.occupancy.warps_per_sm);
  expected.number("occupancy", rounded(c.occupancy.fraction, 1e4));
  expected.text("occupancy_limiter", c.occupancy.limiter);
  expected.number("gcups", rounded(c.predicted_gcups, 1e1));
  expected.close();
  json.close();
}

// Rejections of usable variants begin with a verdict (planner.cpp); all others count as "refused".
std::pair<std::string_view, std::string_view> verdict_of(const Rejection& rejection) {
  const std::string_view reason = rejection.reason;
  for (const std::string_view verdict : {"slower", "for undecided targets", "only by name"}) {
    if (reason.starts_with(verdict) && reason.substr(verdict.size()).starts_with(": "))
      return {verdict, reason.substr(verdict.size() + 2)};
  }
  return {"refused", reason};
}

}  // namespace

std::string architecture_name(const DeviceTraits& device) {
  return fmt::format("sm_{}", device.capability());
}

std::string plan_text(const Plan& plan) {
  const Candidate& c = plan.chosen;
  std::string out = fmt::format(
      "{:<8} {} on {} ({}), {} policy\n"
      "{}"
      "  constants  {}\n"
      "  launch     {} threads a block, as many blocks as are resident, {} bytes of dynamic shared "
      "memory\n"
      "  expected   at most {} registers (launch bound), {} block{} = {} warps per SM ({:.0f} % "
      "occupancy, limited "
      "by {})\n"
      "  predicted  {:.{}f} {}, bound by {}\n",
      stage_name(plan.stage), c.variant->name, plan.device.name, architecture_name(plan.device),
      plan.policy,
      plan.stage == Stage::kHost
          ? fmt::format("  problem    {}\n", plan.problem)
          : fmt::format(
                "  model      length {}, size class {}, {}\n", plan.model_length, plan.class_length,
                c.expected.any_length ? "a kernel for any model"
                : c.expected.padded
                    ? fmt::format("{} positions computed ({:.1f} % padding)",
                                  c.expected.covered_length, 100 * plan.padding())
                    : fmt::format("a kernel for up to {} positions", c.expected.covered_length)),
      constants_text(c.constants), c.expected.launch.block_threads,
      c.expected.launch.dynamic_shared_bytes, c.expected.registers, c.occupancy.blocks_per_sm,
      c.occupancy.blocks_per_sm == 1 ? "" : "s", c.occupancy.warps_per_sm,
      100 * c.occupancy.fraction, c.occupancy.limiter, c.predicted_gcups,
      c.predicted_gcups < 10 ? 2 : 0, rate_unit(plan.stage), c.expected.binding_resource);
  if (!plan.tuned.empty()) {
    fmt::format_to(std::back_inserter(out), "  tuned      {}\n", plan.tuned);
  }
  for (const Rejection& r : plan.rejected) {
    const auto [verdict, reason] = verdict_of(r);
    fmt::format_to(std::back_inserter(out), "  {:10} {}: {}\n", verdict, r.variant, reason);
  }
  return out;
}

std::string plan_json(const Plan& plan) {
  std::string out;
  JsonObject json(out);
  json.text("stage", stage_name(plan.stage));
  json.number("model_length", plan.model_length);
  json.number("class_length", plan.class_length);
  json.number("alphabet_codes", plan.alphabet_codes);
  json.text("device", plan.device.name);
  json.text("architecture", architecture_name(plan.device));
  json.text("policy", plan.policy);
  json.number("padding", rounded(plan.padding(), 1e4));
  write_candidate(json.member("chosen"), plan.chosen);
  json.array("fallbacks", plan.fallbacks, write_candidate);
  json.array("rejected", plan.rejected, [](std::string& to, const Rejection& r) {
    JsonObject rejection(to);
    const auto [verdict, reason] = verdict_of(r);
    rejection.text("variant", r.variant);
    rejection.text("verdict", verdict);
    rejection.text("reason", reason);
    rejection.close();
  });
  if (plan.stage == Stage::kHost) json.text("problem", plan.problem);
  if (!plan.tuned.empty()) json.text("tuned", plan.tuned);
  json.close();
  return out;
}

}  // namespace hmmjit::plan
