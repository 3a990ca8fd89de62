// What each step of the cascade says of one target, for those who ask why it is no hit.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "domain/domain.hpp"
#include "model/targets.hpp"
#include "search/options.hpp"
#include "search/prepared_model.hpp"

namespace hmmjit {

/// The score of one filter and its threshold (Eddy 2011).
struct FilterStep {
  std::string_view name;  ///< "msv", "bias", "viterbi" or "forward"
  /// Of the step itself (+inf: overflow); bias: of the model that replaces the null model.
  float nats = 0;
  /// What is compared with `limit`, in bits over the null model, or over the bias model from "bias"
  /// on; bias: the MSV score again.
  float bits = 0;
  double p = 0;      ///< P-value of `bits`
  double limit = 0;  ///< F1, F2 or F3
  /// not P > limit; of Viterbi also true if the MSV score already satisfies F2, as then the search
  /// leaves Viterbi out.
  bool passes = false;
};

/// All steps are computed, those after the step that rejects the target too.
struct PairScores {
  float null_nats = 0;
  /// In order; none of a target without residues, which a search skips.
  std::vector<FilterStep> steps;
  /// Domains and final score, as if the filters had let the target pass; none without a domain.
  std::optional<domain::TargetScore> score;
  /// The first step that rejects the target; null if it passes or has no residues.
  const FilterStep* rejected_by() const {
    for (const FilterStep& step : steps)
      if (!step.passes) return &step;
    return nullptr;
  }
};

/// Scores a target, whose residues must be codes of the model's alphabet, on the calling thread.
/// Fails with kResources if a region needs a larger matrix than `domain` allows.
Result<PairScores> score_pair(const PreparedModel& model, const TargetView& target,
                              const FilterOptions& filters, const domain::DomainOptions& domain);

}  // namespace hmmjit
