// Scores a target from the scores of its domains, as in HMMER3 (Eddy 2011).
#pragma once

#include "domain/domain.hpp"

namespace hmmjit::domain {

/// Computes the scores of the domains and of the target, which is their sum if that is higher, from
/// the target's Forward score, its null2 odds in nats, [L + 1], and `score.domains`.
void score_target(const SearchModel& model, bool null2, int L, float forward_nats,
                  const float* correction, TargetScore& score);

}  // namespace hmmjit::domain
