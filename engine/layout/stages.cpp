#include "layout/stages.hpp"

#include "reference/filters.hpp"

namespace hmmjit::layout {

namespace dev = hmmjit_device;

namespace {
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int16_t kImpossibleWord = -32768;
}  // namespace

ByteStage::ByteStage(const ByteProfile& profile, const Calibration& calibration, double F1,
                     std::span<const std::uint32_t> class_lengths)
    : profile_(profile),
      tables_(make_byte_tables(profile)),
      classes_(make_length_classes(profile, calibration, F1, class_lengths)) {}

void ByteStage::place(TableBlock& block, bool msv) {
  at_classes_ = block.add(classes_);
  at_emissions_ = block.add(tables_.emissions);
  if (msv) at_costs_ = block.add(tables_.costs);
}

dev::ByteFilterParams ByteStage::parameters(std::uintptr_t base) const {
  dev::ByteFilterParams p{};
  p.classes = at_classes_.in(base);
  p.emissions = at_emissions_.in(base);
  p.costs = at_costs_.in(base);
  p.emission_stride = tables_.stride;
  p.model_length = static_cast<dev::u32>(profile_.M);
  p.tile_count = 1;
  p.base = static_cast<dev::u8>(profile_.base);
  p.bias = profile_.bias;
  p.tbm = profile_.tbm;
  p.tec = profile_.tec;
  return p;
}

ByteAnswer byte_answer(const ByteProfile& profile, dev::FilterResult result, int length) {
  ByteAnswer out{.status = static_cast<dev::FilterStatus>((result >> 16) & 3u),
                 .value = static_cast<int>(result & 0xffffu),
                 .passed = (result & dev::kResultPassed) != 0,
                 .recurrence = (result & dev::kResultMsv) != 0};
  if (out.status == dev::kStatusOverflow) {
    out.nats = kInfinity;
  } else if (out.status == dev::kStatusScore) {
    out.nats = out.recurrence ? reference::msv_nats(profile, out.value, length)
                              : reference::ssv_decide(profile, out.value, length).nats;
  }
  return out;
}

WordStage::WordStage(const WordProfile& profile, std::span<const std::uint32_t> class_lengths)
    : profile_(profile),
      tables_(make_node_tables(profile, kImpossibleWord)),
      moves_(make_word_moves(profile, class_lengths)) {}

void WordStage::place(TableBlock& block) {
  at_moves_ = block.add(moves_);
  at_emissions_ = block.add(tables_.emissions);
  at_transitions_ = block.add(tables_.transitions);
}

dev::WordFilterParams WordStage::parameters(std::uintptr_t base) const {
  dev::WordFilterParams p{};
  p.move = at_moves_.in(base);
  p.emissions = at_emissions_.in(base);
  p.transitions = at_transitions_.in(base);
  p.stride = tables_.stride;
  p.model_length = static_cast<dev::u32>(profile_.M);
  p.tile_count = 1;
  p.base = static_cast<dev::s16>(profile_.base);
  p.ec = profile_.ec;
  p.ej = profile_.ej;
  return p;
}

WordAnswer word_answer(const WordProfile& profile, dev::WordResult result, int length) {
  WordAnswer out{.status = static_cast<dev::FilterStatus>(result >> 16),
                 .end = static_cast<std::int16_t>(result & 0xffffu)};
  if (out.status == dev::kStatusOverflow) {
    out.nats = kInfinity;
  } else if (out.status == dev::kStatusScore) {
    out.nats = reference::viterbi_nats(profile, static_cast<std::int16_t>(out.end), length);
  }
  return out;
}

FloatStage::FloatStage(const OddsProfile& profile)
    : profile_(profile), tables_(make_node_tables(profile, 0.0f)) {}

void FloatStage::place(TableBlock& block) {
  at_emissions_ = block.add(tables_.emissions);
  at_transitions_ = block.add(tables_.transitions);
}

dev::FloatFilterParams FloatStage::parameters(std::uintptr_t base) const {
  dev::FloatFilterParams p{};
  p.emissions = at_emissions_.in(base);
  p.transitions = at_transitions_.in(base);
  p.stride = tables_.stride;
  p.model_length = static_cast<dev::u32>(profile_.M);
  const LengthModel specials = length_model(100, true);  // E->C, E->J: same at any length
  p.ec = specials.ec;
  p.ej = specials.ej;
  return p;
}

BiasStage::BiasStage(const BiasModel& model) : model_(model), odds_(make_bias_odds(model)) {}

void BiasStage::place(TableBlock& block) { at_odds_ = block.add(odds_); }

dev::BiasParams BiasStage::parameters(std::uintptr_t base) const {
  dev::BiasParams p{};
  p.odds = at_odds_.in(base);
  p.t10 = model_.t10;
  p.t11 = model_.t11;
  return p;
}

}  // namespace hmmjit::layout
