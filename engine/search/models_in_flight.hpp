// How many models of a search are set up and in flight, and whether a further one may be begun.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hmmjit::search_run {

/// If fewer filter tasks than this wait, a further model is set up.
constexpr std::uint64_t low_water(int threads) {
  return 2 * static_cast<std::uint64_t>(threads) + 1;
}
/// Limit of models in flight without a device.
constexpr std::uint64_t most_models(int threads) { return low_water(threads) + 1; }
/// Assumed number of models in flight where memory is divided among them. Devices may have more.
constexpr std::uint64_t expected_models(int threads, bool device) {
  return (device ? 8 : 1) * most_models(threads);
}

/// Bounds on models in flight.
struct InFlightLimits {
  std::uint64_t model_bytes, target_bytes;
  int threads;
  bool device;  ///< devices take part: many more models are in flight
};

/// The state of the search that decides whether a model is begun.
struct SearchDemand {
  bool results_full;              ///< too many results wait to be delivered
  std::uint64_t waiting_filters;  ///< tasks
};

/// Whether the models in flight form a batch, for which the targets are read once.
enum class Batch : std::uint8_t { kNone, kFilling, kFull };

/// A record without a lock.
class ModelsInFlight {
 public:
  explicit ModelsInFlight(const InFlightLimits& limits) : limits_(limits) {}

  bool may_start(const SearchDemand& demand, Batch batch) const;
  /// A model is being set up.
  void start() { ++preparing_; }
  void end_input() { models_ended_ = true; }
  void reopen_input() { models_ended_ = false; }
  /// A set-up has found no model.
  void end_set_up() { --preparing_; }
  void add(std::size_t bytes);
  /// A model has all its hits: its tables are freed.
  void release(std::size_t bytes) { active_bytes_ -= bytes; }
  void end() { --active_; }

  bool setting_up() const { return preparing_ > 0; }
  bool any() const { return active_ > 0 || preparing_ > 0; }
  /// Whether the input may have further models.
  bool more() const { return !models_ended_; }

 private:
  // Assumed bytes of a model before any has been set up: those of about 250 positions.
  static constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

  const InFlightLimits limits_;
  bool models_ended_ = false;
  std::size_t preparing_ = 0, active_ = 0, active_bytes_ = 0;
  std::size_t model_estimate_ = kFirstModelEstimate;  // of one model
};

}  // namespace hmmjit::search_run
