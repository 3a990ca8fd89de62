#include "search/models_in_flight.hpp"

#include <algorithm>

namespace hmmjit::search_run {
namespace {

// Limits of a search with a device: models set up at a time, models in flight, and their bytes.
constexpr std::size_t kSettingUpBesideDevice = 4, kActiveBesideDevice = 1024;
constexpr std::uint64_t kModelBytesBesideDevice = std::uint64_t{64} << 20;

}  // namespace

bool ModelsInFlight::may_start(const SearchDemand& demand, Batch batch) const {
  if (!more()) return false;
  const std::uint64_t most_active = most_models(limits_.threads);
  // Models wait for the end of the targets, which may arrive slowly, so the bound holds from the
  // first model on. Models that are being set up have no size yet.
  const std::size_t expected = active_bytes_ + model_estimate_ * (preparing_ + 1);
  if (any() && expected > limits_.model_bytes) return false;
  if (batch != Batch::kNone) return batch == Batch::kFilling && preparing_ < most_active;
  // A model counts as work before it is set up, so that one call does not start them all.
  if (demand.results_full) return false;
  const std::size_t in_flight = preparing_ + active_;
  if (!limits_.device)
    return in_flight < most_active &&
           demand.waiting_filters + preparing_ < low_water(limits_.threads);
  // A device finishes a model long before its last domain is scored, and needs many models to stay
  // busy. Models are parsed one at a time anyway.
  return preparing_ < kSettingUpBesideDevice &&
         (in_flight < most_active ||
          (in_flight < kActiveBesideDevice &&
           active_bytes_ + preparing_ * model_estimate_ <
               std::min<std::uint64_t>(limits_.model_bytes, kModelBytesBesideDevice)));
}

void ModelsInFlight::add(std::size_t bytes) {
  --preparing_;
  ++active_;
  active_bytes_ += bytes;
  model_estimate_ = std::max(model_estimate_, bytes);
}

}  // namespace hmmjit::search_run
