#include "plan/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <utility>
#include <variant>

#include "core/json_object.hpp"

namespace hmmjit::plan {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

// Reads the fields of a line and of its object "constants" without building a document (see
// core/json_object.hpp). Stops at anything unexpected.
class Line final : public Json::json_sax_t {
 public:
  std::optional<std::string> text(const char* name) const { return find<std::string>(name); }
  std::optional<std::int64_t> integer(const char* name, std::int64_t least) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    const auto value = find<std::int64_t>(name);
    return value && *value >= least && *value <= kMost ? value : std::nullopt;
  }
  std::optional<double> rate(const char* name) const {
    const auto whole = find<std::int64_t>(name);
    const auto value = whole ? static_cast<double>(*whole) : find<double>(name);
    return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
  }
  const std::optional<Constants>& constants() const { return constants_; }

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return std::in_range<std::int64_t>(value) && add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (++depth_ == 1) return true;
    if (depth_ > 2 || key_ != "constants" || constants_) return false;
    constants_.emplace();
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  using Value = std::variant<std::int64_t, double, std::string>;
  template <typename T>
  std::optional<T> find(const char* name) const {
    const auto at = fields_.find(name);
    if (at == fields_.end() || !std::holds_alternative<T>(at->second)) return std::nullopt;
    return std::get<T>(at->second);
  }
  bool add(Value value) {
    if (depth_ == 1) return fields_.emplace(key_, std::move(value)).second;
    const auto* const whole = std::get_if<std::int64_t>(&value);
    if (depth_ != 2 || whole == nullptr || constants_->find(key_)) return false;
    constants_->add(key_, *whole);
    return true;
  }

  int depth_ = 0;
  std::string key_;
  std::map<std::string, Value> fields_;
  std::optional<Constants> constants_;
};

/// Parses a choice from one line; nullopt unless every field has its type and a plausible value.
std::optional<TunedChoice> parse_line(std::string_view text) {
  Line line;
  if (!Json::sax_parse(text, &line)) return std::nullopt;
  constexpr std::int64_t kMostLength = 1 << 30;
  const auto format = line.integer("format", 0), capability = line.integer("capability", 1),
             sm_count = line.integer("sm_count", 1), length = line.integer("class_length", 1),
             targets = line.integer("targets", 0), residues = line.integer("residues", 0);
  const auto device = line.text("device"), catalogue = line.text("catalogue"),
             stage_text = line.text("stage"), variant = line.text("variant");
  const auto gcups = line.rate("gcups"), planned = line.rate("planned_gcups");
  if (!format || *format != kFormat || !capability || *capability > 10000 || !sm_count ||
      *sm_count > 100000 || !length || *length > kMostLength || !targets || !residues || !device ||
      !catalogue || !stage_text || !variant || !gcups || !planned || !line.constants()) {
    return std::nullopt;
  }
  const auto stage = find_stage(*stage_text);
  if (!stage) return std::nullopt;
  TunedChoice out;
  out.constants = *line.constants();
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
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part);
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
    JsonObject json(out);
    json.number("format", kFormat);
    json.text("device", c.device);
    json.number("capability", c.capability);
    json.number("sm_count", c.sm_count);
    json.text("catalogue", c.catalogue);
    json.text("stage", stage_name(c.stage));
    json.number("class_length", c.class_length);
    json.text("variant", c.variant);
    write_constants(json, c.constants);
    json.number("gcups", to_tenth(c.gcups));
    json.number("planned_gcups", to_tenth(c.planned_gcups));
    json.number("targets", c.targets);
    json.number("residues", c.residues);
    json.close();
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
