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
  constexpr std::array kNames{"byte", "word", "half", "byte+half", "float"};
  return kNames[static_cast<std::size_t>(cell)];
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
  constexpr std::array<std::span<const KernelVariant> (*)(), kStages> kVariants{
      ssv_variants,  msv_variants,    bias_variants,     viterbi_variants, forward_variants,
      gate_variants, parser_variants, ensemble_variants, envelope_variants};
  if (stage == Stage::kHost) return {};
  return kVariants[static_cast<std::size_t>(stage)]();
}

Status check_variant(std::string_view name, std::string where) {
  std::string names;
  for (int i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    for (const KernelVariant& v : variants_of(stage)) {
      if (v.name == name) return {};
      fmt::format_to(std::back_inserter(names), "{}{}/{}", names.empty() ? "" : ", ",
                     stage_name(stage), v.name);
    }
  }
  return fail(ErrorCode::kUsage, fmt::format("no variant \"{}\"", name), std::move(where),
              "variants: " + names);
}

}  // namespace hmmjit::plan
