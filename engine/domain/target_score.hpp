// Scores of a target from those of its domains, as HMMER3 does (Eddy 2011).
#pragma once

#include "domain/domain.hpp"

namespace hmmjit::domain {

/// From the target's Forward score, its null2 odds in nats, [L + 1], and `score.domains`: their
/// scores and its own, which is their sum where that is more.
void score_target(const SearchModel& model, bool null2, int L, float forward_nats,
                  const float* correction, TargetScore& score);

}  // namespace hmmjit::domain
