#include "plan/kernel_variant.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "core/json_object.hpp"

namespace hmmjit::plan {

namespace {
constexpr std::array<std::string_view, kStages + 1> kStageNames{
    "ssv", "msv", "bias", "viterbi", "forward", "gate", "parser", "ensemble", "envelope", "host"};
}

std::string_view stage_name(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

std::optional<Stage> find_stage(std::string_view name) {
  for (std::size_t i = 0; i < kStages; ++i) {
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

std::string_view cell_type_name(CellType cell) {
  switch (cell) {
    case CellType::kByte:
      return "byte";
    case CellType::kWord:
      return "word";
    case CellType::kHalf:
      return "half";
    case CellType::kByteAndHalf:
      return "byte+half";
    case CellType::kFloat:
      return "float";
  }
  return "?";
}

Constants::Constants(std::initializer_list<std::pair<std::string_view, std::int64_t>> list) {
  for (const auto& [name, value] : list) add(name, value);
}

void Constants::add(std::string_view name, std::int64_t value) {
  if (find(name)) throw std::invalid_argument(fmt::format("constant {} given twice", name));
  list_.emplace_back(name, value);
}

std::optional<std::int64_t> Constants::find(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::int64_t Constants::at(std::string_view name) const {
  const auto value = find(name);
  if (!value) throw std::out_of_range(fmt::format("no constant {} in this kernel", name));
  return *value;
}

void write_constants(JsonObject& json, const Constants& constants) {
  JsonObject object = json.object("constants");
  for (const auto& [name, value] : constants.list()) object.number(name, value);
  object.close();
}

std::span<const KernelVariant> variants_of(Stage stage) {
  switch (stage) {
    case Stage::kSsv:
      return ssv_variants();
    case Stage::kMsv:
      return msv_variants();
    case Stage::kBias:
      return bias_variants();
    case Stage::kViterbi:
      return viterbi_variants();
    case Stage::kForward:
      return forward_variants();
    case Stage::kGate:
      return gate_variants();
    case Stage::kParser:
      return parser_variants();
    case Stage::kEnsemble:
      return ensemble_variants();
    case Stage::kEnvelope:
      return envelope_variants();
    case Stage::kHost:
      break;
  }
  return {};
}

}  // namespace hmmjit::plan
