// How many models of a search are set up at a time, and how many are in flight.
//
// A record without a lock of its own, which belongs to SearchWindow.
#pragma once

#include <cstddef>
#include <cstdint>

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
};

/// Whether the models in flight are a batch, over which the targets pass once.
enum class Batch : std::uint8_t { kNone, kFilling, kFull };

class ModelsInFlight {
 public:
  explicit ModelsInFlight(const WindowLimits& limits) : limits_(limits) {}

  bool may_start(const SearchDemand& demand, Batch batch) const;
  /// Returns how many models may be set up now; from here on they count as being set up.
  std::size_t start(const SearchDemand& demand, Batch batch);
  /// The input has no further model. `setting_up`: a set-up has found this out and ends.
  void end_input(bool setting_up);
  /// A model has been set up.
  void add(std::size_t bytes);
  /// A model has all its hits: its tables are freed.
  void release(std::size_t bytes) { active_bytes_ -= bytes; }
  /// A model has ended.
  void end() { --active_; }

  bool setting_up() const { return preparing_ > 0; }
  bool any() const { return active_ > 0 || preparing_ > 0; }
  /// Whether the input may have further models.
  bool more() const { return !models_ended_; }

 private:
  // Assumed bytes of a model before any has been seen: those of some 250 nodes.
  static constexpr std::size_t kFirstModelEstimate = std::size_t{256} << 10;

  const WindowLimits limits_;
  bool models_ended_ = false;
  std::size_t preparing_ = 0, active_ = 0, active_bytes_ = 0;
  std::size_t model_estimate_ = kFirstModelEstimate;  // of one model
};

}  // namespace hmmjit::search_run
