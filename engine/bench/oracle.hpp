// The CPU filters' answers for the distinct targets of a measurement.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "bench/targets.hpp"
#include "model/profile.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit::bench {

/// Scores of one model by stage, computed on first use with all cores. In nats; +inf: overflow;
/// NaN: no result (SSV). The references must outlive it.
class Oracle {
 public:
  Oracle(std::shared_ptr<const SearchModel> model, const Sequences& distinct, int threads)
      : model_(std::move(model)), distinct_(distinct), threads_(threads) {}
  /// One score per distinct target.
  const std::vector<float>& scores(plan::Stage stage);
  /// Rate of the CPU filter on one thread over a sample of the targets, in 1e9 cells per second.
  double one_core_gcups(plan::Stage stage, double seconds) const;

 private:
  std::shared_ptr<const SearchModel> model_;
  const Sequences& distinct_;
  int threads_;
  std::array<std::vector<float>, plan::kStages> scores_;
};

}  // namespace hmmjit::bench
