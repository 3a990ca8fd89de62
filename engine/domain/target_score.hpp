// Scores of a target from those of its domains, as HMMER3 does (Eddy 2011).
#pragma once

#include "domain/domain.hpp"

namespace hmmjit::domain {

class TargetScorer {
 public:
  TargetScorer(const SearchModel& model, bool null2) : model_(model), null2_(null2) {}

  /// From the target's Forward score, its null2 odds in nats, [L + 1], and `score.domains`: their
  /// scores and its own, which is their sum where that is more.
  void score(int L, float forward_nats, const float* correction, TargetScore& score) const;

 private:
  float bias(float nats) const;
  double log_p(float bits) const;

  const SearchModel& model_;
  bool null2_;
};

}  // namespace hmmjit::domain
