#include "plan/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace hmmjit::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

/// A choice from one line; nothing unless every field is there with its type and a sane value.
std::optional<TunedChoice> parse_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto text = [&](const char* name) -> std::optional<std::string> {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_string()) return std::nullopt;
    return at->get<std::string>();
  };
  const auto integer = [&](const char* name, std::int64_t least) -> std::optional<std::int64_t> {
    const auto at = json.find(name);
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    if (at == json.end() || !at->is_number_integer()) return std::nullopt;
    if (at->is_number_unsigned() && at->get<std::uint64_t>() > kMost) return std::nullopt;
    const auto value = at->get<std::int64_t>();
    if (value < least || value > kMost) return std::nullopt;
    return value;
  };
  const auto rate = [&](const char* name) -> std::optional<double> {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_number()) return std::nullopt;
    const auto value = at->get<double>();
    if (!std::isfinite(value) || value < 0) return std::nullopt;
    return value;
  };
  constexpr std::int64_t kMostLength = 1 << 30;
  const auto format = integer("format", 0), capability = integer("capability", 1),
             sm_count = integer("sm_count", 1), length = integer("class_length", 1),
             targets = integer("targets", 0), residues = integer("residues", 0);
  const auto device = text("device"), catalogue = text("catalogue"), stage_text = text("stage"),
             variant = text("variant");
  const auto gcups = rate("gcups"), planned = rate("planned_gcups");
  if (!format || *format != kFormat || !capability || *capability > 10000 || !sm_count ||
      *sm_count > 100000 || !length || *length > kMostLength || !targets || !residues || !device ||
      !catalogue || !stage_text || !variant || !gcups || !planned) {
    return std::nullopt;
  }
  const auto stage = find_stage(*stage_text);
  const auto constants = json.find("constants");
  if (!stage || constants == json.end() || !constants->is_object()) return std::nullopt;
  TunedChoice out;
  for (const auto& [name, value] : constants->items()) {
    if (!value.is_number_integer() || out.constants.find(name)) return std::nullopt;
    out.constants.add(name, value.get<std::int64_t>());
  }
  out.device = *device;
  out.capability = static_cast<int>(*capability);
  out.sm_count = static_cast<int>(*sm_count);
  out.catalogue = *catalogue;
  out.stage = *stage;
  out.class_length = static_cast<int>(*length);
  out.variant = *variant;
  out.gcups = *gcups;
  out.planned_gcups = *planned;
  out.targets = static_cast<std::uint64_t>(*targets);
  out.residues = static_cast<std::uint64_t>(*residues);
  return out;
}

double to_tenth(double value) { return std::round(value * 10) / 10; }

}  // namespace

TuningTable TuningTable::parse(std::string_view text, std::string_view catalogue,
                               std::size_t* skipped) {
  TuningTable out;
  std::size_t left_out = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto choice = parse_line(line);
    if (choice && choice->catalogue == catalogue) {
      out.add(std::move(*choice));
    } else {
      ++left_out;
    }
  }
  if (skipped != nullptr) *skipped = left_out;
  return out;
}

std::string TuningTable::text() const {
  std::string out;
  for (const auto& [key, c] : choices_) {
    Json constants = Json::object();
    for (const auto& [name, value] : c.constants.list()) constants[name] = value;
    const Json json{{"format", kFormat},
                    {"device", c.device},
                    {"capability", c.capability},
                    {"sm_count", c.sm_count},
                    {"catalogue", c.catalogue},
                    {"stage", stage_name(c.stage)},
                    {"class_length", c.class_length},
                    {"variant", c.variant},
                    {"constants", std::move(constants)},
                    {"gcups", to_tenth(c.gcups)},
                    {"planned_gcups", to_tenth(c.planned_gcups)},
                    {"targets", c.targets},
                    {"residues", c.residues}};
    out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    out += '\n';
  }
  return out;
}

void TuningTable::add(TunedChoice choice) {
  Key key{choice.device, choice.capability, choice.sm_count, choice.stage, choice.class_length};
  choices_.insert_or_assign(std::move(key), std::move(choice));
}

const TunedChoice* TuningTable::find(Stage stage, int class_length,
                                     const DeviceTraits& device) const {
  const auto found =
      choices_.find(Key{device.name, device.capability(), device.sm_count, stage, class_length});
  return found == choices_.end() ? nullptr : &found->second;
}

}  // namespace hmmjit::plan
