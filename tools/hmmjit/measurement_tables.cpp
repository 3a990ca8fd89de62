#include "hmmjit/measurement_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <utility>

#include "hmmjit/fields.hpp"

namespace hmmjit::tools {
namespace {

using bench::Measurement;
using plan::Stage;

/// "warp_sync", with the place of the table if the variant allows several.
std::string variant_label(const Measurement& m) {
  const std::string_view place = m.candidate.expected.placement;
  const std::string_view name = m.candidate.variant->name;
  return place.empty() ? std::string(name) : fmt::format("{} ({})", name, place);
}

Json measurement_json(const Measurement& m) {
  Json constants = Json::object();
  for (const auto& [name, value] : m.candidate.constants.list()) constants[name] = value;
  Json out{{"stage", plan::stage_name(m.stage)},
           {"model", m.model},
           {"model_length", m.model_length},
           {"variant", m.candidate.variant->name},
           {"constants", std::move(constants)}};
  if (!m.refused.empty()) {
    out["refused"] = m.refused;
    return out;
  }
  out.update({{"targets", m.targets},
              {"residues", m.residues},
              {"sample", m.sample},
              {"wrong", m.wrong},
              {"flagged", m.flagged},
              {"of_guard", m.of_guard},
              {"milliseconds", m.milliseconds},
              {"fastest_ms", m.fastest},
              {"slowest_ms", m.slowest},
              {"exact_kernel_ms", m.exact_milliseconds},
              {"launches", m.launches},
              {"gcups", m.gcups},
              {"predicted_gcups", m.candidate.predicted_gcups},
              {"registers", m.registers},
              {"local_bytes", m.local_bytes},
              {"blocks_per_sm", m.blocks_per_sm},
              {"warps_per_sm", m.blocks_per_sm * m.candidate.expected.launch.block_threads / 32},
              {"planned_warps_per_sm", m.candidate.occupancy.warps_per_sm},
              {"compiled", m.compiled},
              {"obtain_ms", m.obtain_milliseconds},
              {"load_ms", m.load_milliseconds}});
  if (m.wrong > 0) out["first_wrong"] = m.first_wrong;
  return out;
}

/// A label, and the cell of a model length.
using Row = std::pair<std::string, std::function<std::string(int)>>;

/// One table over model lengths.
std::string length_table(const std::string& title, const std::vector<int>& lengths,
                         const std::vector<Row>& rows) {
  std::string out = fmt::format("\n{}\n{:28}", title, "M");
  for (const int length : lengths) fmt::format_to(std::back_inserter(out), " {:>8}", length);
  out += '\n';
  for (const auto& [label, cell] : rows) {
    fmt::format_to(std::back_inserter(out), "{:28}", label);
    for (const int length : lengths)
      fmt::format_to(std::back_inserter(out), " {:>8}", cell(length));
    out += '\n';
  }
  return out;
}

std::string rate_text(double gcups) {
  return gcups >= 100 ? fmt::format("{:.0f}", gcups) : fmt::format("{:.1f}", gcups);
}
// Cells of tables; 0: not measured.
std::string rate_cell(double gcups) { return gcups > 0 ? rate_text(gcups) : "-"; }
std::string ratio_cell(double gcups, double other, int digits) {
  return gcups > 0 && other > 0 ? fmt::format("{:.{}f}", gcups / other, digits) : "-";
}

// A row for the terminal.
std::string row(const Measurement& m) {
  if (!m.refused.empty()) {
    return fmt::format("{:8} {:18} {:>5} not run: {}\n", plan::stage_name(m.stage),
                       m.candidate.variant->name, m.model_length, m.refused);
  }
  std::string out = fmt::format(
      "{:8} {:18} {:>5} {:>9} {:>5.0f} {:>10.3f} {:>4} {:>8} {:>8.1f} {:>6.2f} {:>9} {:>6}  {}{}",
      plan::stage_name(m.stage), m.candidate.variant->name, m.model_length, rate_text(m.gcups),
      100 * m.of_prediction(), m.milliseconds, m.registers,
      fmt::format("{} ({})", m.blocks_per_sm * m.candidate.expected.launch.block_threads / 32,
                  m.candidate.occupancy.warps_per_sm),
      m.obtain_milliseconds, m.load_milliseconds, m.targets, m.wrong,
      bench::constants_text(m.candidate.constants), m.compiled ? "" : "; cached");
  if (m.local_bytes > 0) out += fmt::format("; {} bytes local", m.local_bytes);
  if (m.sample) out += fmt::format("; sample, {} residues", m.residues);
  if (m.flagged > 0) {
    out += fmt::format("; {} flagged, exact kernel {:.3f} ms", m.flagged, m.exact_milliseconds);
  }
  if (m.of_guard > 0) out += fmt::format("; within {:.3f} of the guard", m.of_guard);
  if (m.wrong > 0) out += "; first wrong: " + m.first_wrong;
  return out + "\n";
}

}  // namespace

MeasurementTables::MeasurementTables(const bench::Bench& bench, bool prints)
    : bench_(bench), prints_(prints) {
  if (prints_) fmt::print("{}", heading());
}

std::string MeasurementTables::heading() const {
  const plan::DeviceTraits& d = bench_.device();
  return fmt::format(
      "{}, {} SMs, {:.2f} GHz; {} distinct targets x {}, {} targets, {} residues\n"
      "GCUPS: model length x residues; %: of the predicted rate; warps per SM: (planned)\n"
      "{:8} {:18} {:>5} {:>9} {:>5} {:>10} {:>4} {:>8} {:>8} {:>6} {:>9} {:>6}  {}\n",
      d.name, d.sm_count, d.clock_khz * 1e-6, bench_.distinct(), bench_.targets().copies(),
      bench_.targets().size(), bench_.targets().residues(), "stage", "variant", "M", "GCUPS", "%",
      "ms", "regs", "warps", "make ms", "load", "checked", "wrong", "constants");
}

void MeasurementTables::add(const Measurement& m) {
  measurements_.push_back(m);
  wrong_ += m.wrong;
  answers_ += m.targets;
  ++(m.refused.empty() ? measured_ : failed_);
  if (!prints_) return;
  fmt::print("{}", row(m));
  std::fflush(stdout);
}

void MeasurementTables::add_generic(const Measurement& m) {
  wrong_ += m.wrong;
  answers_ += m.targets;
  generic_.insert_or_assign(Key{m.stage, m.model_length}, m);
}

void MeasurementTables::add_one_core(Stage stage, int model_length, double gcups) {
  one_core_.insert_or_assign(Key{stage, model_length}, gcups);
}

std::string MeasurementTables::summary() const {
  std::string out = fmt::format("{} kernels measured, {} not run, {} answers compared, {} wrong\n",
                                measured_, failed_, answers_, wrong_);
  for (const std::string& refusal : refusals_) out += "not planned: " + refusal + "\n";
  return out;
}

std::string MeasurementTables::paper() const {
  std::string out;
  for (int i = 0; i < plan::kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    std::vector<int> lengths;
    std::vector<std::string> labels;
    std::map<std::pair<std::string, int>, const Measurement*> best;
    std::map<int, const Measurement*> fastest;
    for (const Measurement& m : measurements_) {
      if (m.stage != stage || !m.exact()) continue;
      if (std::ranges::find(lengths, m.model_length) == lengths.end()) {
        lengths.push_back(m.model_length);
      }
      const std::string label = variant_label(m);
      if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
      const Measurement*& slot = best[{label, m.model_length}];
      if (slot == nullptr || m.gcups > slot->gcups) slot = &m;
      const Measurement*& top = fastest[m.model_length];
      if (top == nullptr || m.gcups > top->gcups) top = &m;
    }
    if (lengths.empty()) continue;
    std::ranges::sort(lengths);
    const std::string name(plan::stage_name(stage));
    const auto rate_of = [&](const std::string& label, int M) {
      const auto at = best.find({label, M});
      return at == best.end() ? 0.0 : at->second->gcups;
    };
    const auto fastest_of = [&](int M) { return fastest[M]->gcups; };
    const auto generic_of = [&](int M) {
      const auto at = generic_.find({stage, M});
      return at == generic_.end() || !at->second.exact() ? 0.0 : at->second.gcups;
    };
    const auto core_of = [&](int M) {
      const auto at = one_core_.find({stage, M});
      return at == one_core_.end() ? 0.0 : at->second;
    };
    std::vector<Row> rates, placed;
    for (const std::string& label : labels) {
      rates.emplace_back(label, [&](int M) { return rate_cell(rate_of(label, M)); });
      const std::string variant = label.substr(0, label.rfind(" (shared)"));
      const std::string global = variant + " (global)";
      if (variant != label && std::ranges::find(labels, global) != labels.end())
        placed.emplace_back(variant, [&, global](int M) {
          return ratio_cell(rate_of(label, M), rate_of(global, M), 2);
        });
    }
    out += length_table(name + ": GCUPS over model length", lengths, rates);
    out += length_table(
        name + ": specialised at run time, or one kernel with the constants of the longest model",
        lengths,
        {{"constants of the model", [&](int M) { return rate_cell(fastest_of(M)); }},
         {"one kernel for all", [&](int M) { return rate_cell(generic_of(M)); }},
         {"ratio", [&](int M) { return ratio_cell(fastest_of(M), generic_of(M), 2); }}});
    if (!placed.empty())
      out += length_table(name + ": score table in shared memory over gathered, ratio", lengths,
                          placed);
    out += length_table(
        name + ": against one core of this machine", lengths,
        {{"one CPU core, GCUPS", [&](int M) { return rate_cell(core_of(M)); }},
         {"fastest kernel", [&](int M) { return rate_cell(fastest_of(M)); }},
         {"speed-up", [&](int M) { return ratio_cell(fastest_of(M), core_of(M), 0); }}});
  }
  return out;
}

std::string MeasurementTables::json() const {
  const plan::DeviceTraits& d = bench_.device();
  Json measurements = Json::array(), generic = Json::array(), cores = Json::array();
  for (const Measurement& m : measurements_) measurements.push_back(measurement_json(m));
  for (const auto& [key, m] : generic_) generic.push_back(measurement_json(m));
  for (const auto& [key, gcups] : one_core_) {
    cores.push_back(
        {{"stage", plan::stage_name(key.first)}, {"model_length", key.second}, {"gcups", gcups}});
  }
  const Json out{
      {"device",
       {{"name", d.name},
        {"architecture", plan::architecture_name(d)},
        {"sm_count", d.sm_count},
        {"clock_khz", d.clock_khz}}},
      {"targets",
       {{"distinct", bench_.distinct()},
        {"copies", bench_.targets().copies()},
        {"targets", bench_.targets().size()},
        {"residues", bench_.targets().residues()}}},
      {"measurements", std::move(measurements)},
      {"one_kernel_for_all", std::move(generic)},
      {"one_cpu_core", std::move(cores)},
      {"not_planned", refusals_},
      {"summary",
       {{"measured", measured_}, {"not_run", failed_}, {"answers", answers_}, {"wrong", wrong_}}}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hmmjit::tools
