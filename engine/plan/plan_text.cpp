#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

using Json = nlohmann::ordered_json;

std::string constants_text(const Constants& constants) {
  std::string out;
  for (const auto& [name, value] : constants.list()) {
    fmt::format_to(std::back_inserter(out), "{}{} {}", out.empty() ? "" : ", ", name, value);
  }
  return out;
}

/// To 1/scale; the quotient of two whole numbers prints as short as it reads.
double rounded(double value, double scale) { return std::round(value * scale) / scale; }

Json candidate_json(const Candidate& c) {
  Json constants = Json::object();
  for (const auto& [name, value] : c.constants.list()) constants[name] = value;
  Json launch = {{"block_threads", c.launch.block_threads},
                 {"grid", "persistent"},
                 {"dynamic_shared_bytes", c.launch.dynamic_shared_bytes}};
  return Json{{"variant", c.variant->name},
              {"template", c.variant->template_file},
              {"entry", c.variant->entry_name},
              {"cell", cell_type_name(c.variant->cell)},
              {"constants", std::move(constants)},
              {"launch", std::move(launch)},
              {"expected",
               {{"registers", c.expected.registers},  // the name of old; says the same
                {"registers_bound", c.expected.registers},
                {"covered_length", c.expected.covered_length},
                {"cells_per_clock_per_sm", rounded(c.expected.cells_per_clock_per_sm, 1e3)},
                {"binding_resource", c.expected.binding_resource},
                {"blocks_per_sm", c.occupancy.blocks_per_sm},
                {"warps_per_sm", c.occupancy.warps_per_sm},
                {"occupancy", rounded(c.occupancy.fraction, 1e4)},
                {"occupancy_limiter", c.occupancy.limiter},
                {"gcups", rounded(c.predicted_gcups, 1e1)}}}};
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
      "  expected   at most {} registers (launch bound), {} blocks = {} warps per SM ({:.0f} % "
      "occupancy, limited "
      "by {})\n"
      "  predicted  {:.0f} {}, bound by {}\n",
      stage_name(plan.stage), c.variant->name, plan.device.name, architecture_name(plan.device),
      plan.policy,
      plan.stage == Stage::kHost
          ? fmt::format("  problem    {}\n", plan.problem)
          : fmt::format(
                "  model      length {}, size class {}, {} positions computed ({:.1f} % padding)\n",
                plan.model_length, plan.class_length, c.expected.covered_length,
                100 * plan.padding()),
      constants_text(c.constants), c.launch.block_threads, c.launch.dynamic_shared_bytes,
      c.expected.registers, c.occupancy.blocks_per_sm, c.occupancy.warps_per_sm,
      100 * c.occupancy.fraction, c.occupancy.limiter, c.predicted_gcups, rate_unit(plan.stage),
      c.expected.binding_resource);
  if (!plan.tuned.empty()) {
    fmt::format_to(std::back_inserter(out), "  tuned      {}\n", plan.tuned);
  }
  for (const Rejection& r : plan.rejected) {
    fmt::format_to(std::back_inserter(out), "  rejected   {}: {}\n", r.variant, r.reason);
  }
  return out;
}

std::string plan_json(const Plan& plan) {
  Json fallbacks = Json::array(), rejected = Json::array();
  for (const Candidate& c : plan.fallbacks) fallbacks.push_back(candidate_json(c));
  for (const Rejection& r : plan.rejected) {
    rejected.push_back({{"variant", r.variant}, {"reason", r.reason}});
  }
  Json json{{"stage", stage_name(plan.stage)},
            {"model_length", plan.model_length},
            {"class_length", plan.class_length},
            {"alphabet_codes", plan.alphabet_codes},
            {"device", plan.device.name},
            {"architecture", architecture_name(plan.device)},
            {"policy", plan.policy},
            {"padding", rounded(plan.padding(), 1e4)},
            {"chosen", candidate_json(plan.chosen)},
            {"fallbacks", std::move(fallbacks)},
            {"rejected", std::move(rejected)}};
  if (plan.stage == Stage::kHost) json["problem"] = plan.problem;
  if (!plan.tuned.empty()) json["tuned"] = plan.tuned;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hmmjit::plan
