// How many models of a search are set up at a time, and how many are in flight.
//
// A record without a lock of its own, which belongs to SearchWindow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "search/model_job.hpp"

namespace hmmjit::search_run {

struct WindowLimits {
  std::uint64_t model_bytes, target_bytes;
  int threads;
  bool device;  ///< devices take part: many more models are in flight
};

/// The state of the rest of the search, as far as it decides how many models are started.
struct SearchDemand {
  bool stopped;
  bool results_full;              ///< too many results wait to be delivered
  std::uint64_t waiting_filters;  ///< tasks
  std::uint64_t delivered_bytes;  ///< of models that are kept although they are delivered
};

/// Whether the models in flight are a batch, over which the targets pass once.
enum class Batch : std::uint8_t { kNone, kFilling, kFull };

/// Models whose set-up begins.
struct ModelStart {
  std::vector<Again> again;
  std::size_t next = 0;  ///< so many from the input
};

class ModelsInFlight {
 public:
  explicit ModelsInFlight(const WindowLimits& limits) : limits_(limits) {}

  bool may_start(const SearchDemand& demand, Batch batch) const;
  /// Takes all models that may be started; they count as being set up.
  ModelStart start(const SearchDemand& demand, Batch batch);
  /// The input has no further model. `setting_up`: found out by a set-up, which ends with that.
  void end_input(bool setting_up);
  /// A model has been set up.
  void add(std::size_t bytes);
  /// A model has ended but for its report: its tables are freed.
  void release(std::size_t bytes) { active_bytes_ -= bytes; }
  /// A model has ended, perhaps only to be searched again.
  void end(std::optional<Again> again);
  void search_again(std::vector<Again> models);

  bool setting_up() const { return preparing_ > 0; }
  bool any() const { return active_ > 0 || preparing_ > 0; }
  bool any_again() const { return !again_.empty(); }
  /// Whether further models will, or may, be started.
  bool more() const { return !models_ended_ || any_again(); }

 private:
  // Assumed bytes of a model before any has been seen: those of some 250 nodes.
  static constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

  const WindowLimits limits_;
  bool models_ended_ = false;
  std::size_t preparing_ = 0, active_ = 0, active_bytes_ = 0;
  std::size_t model_estimate_ = kFirstModelEstimate;  // of one model
  std::deque<Again> again_;
};

}  // namespace hmmjit::search_run
