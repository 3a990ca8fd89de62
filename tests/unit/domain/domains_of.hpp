// Domains of targets that all pass the Forward filter.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "domain/domain.hpp"

namespace hmmjit::domain {

/// `forward_nats`: the scores of forward_filter, which the call must reproduce.
inline void define_domains_batch(const ForwardTables& model, std::span<const TargetView> targets,
                                 const std::vector<float>& forward_nats,
                                 const DomainOptions& options, Workspace& workspace,
                                 std::span<std::optional<TargetScore>> results,
                                 const WantedTarget& wanted = {}) {
  std::vector<float> nats(targets.size());
  const auto passes = [](std::size_t, float) { return true; };
  score_targets_batch(model, targets, passes, options, workspace, nats, results, wanted);
  EXPECT_EQ(nats, forward_nats);
}

inline std::optional<TargetScore> define_domains(const ForwardTables& model,
                                                 const TargetView& target, float forward_nats,
                                                 const DomainOptions& options,
                                                 Workspace& workspace) {
  std::optional<TargetScore> result;
  define_domains_batch(model, {&target, 1}, {forward_nats}, options, workspace, {&result, 1});
  return result;
}

}  // namespace hmmjit::domain
