// Measures what the planner predicts: its candidates for a model on the present device.
#pragma once

#include <optional>
#include <vector>

#include "bench/bench.hpp"
#include "plan/tuning.hpp"

namespace hmmjit::bench {

struct TuneResult {
  std::optional<plan::TunedChoice> choice;  ///< nothing when no candidate was exact
  std::vector<Measurement> measurements;    ///< the planner's first choice first
};

/// Measures the candidates that compete for the current model's size class, at most
/// `most_candidates` of each variant, and chooses the fastest of those whose every score is right.
/// A candidate wins over the planner's own first choice only by more than the noise (1 %).
Result<TuneResult> tune(Bench& bench, const SearchModel& model, plan::Stage stage,
                        const std::string& catalogue, std::size_t most_candidates);

}  // namespace hmmjit::bench
