#include "search/scorer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/memory.hpp"
#include "core/threads.hpp"
#include "model/residue_copies.hpp"
#include "search/memory_shares.hpp"
#include "search/target_counters.hpp"

namespace hmmjit::search_run {
namespace {

std::uint64_t index_of(const WaitingTarget& target) {
  return target.targets->first_index() + target.index;
}

}  // namespace

Status Scorer::compute(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) {
  const auto compute_with = [&](const domain::DomainOptions& options,
                                domain::Workspace& workspace) {
    local.forward_nats.assign(local.views.size(), 0.0f);
    local.scores.assign(local.views.size(), std::nullopt);
    domain::score_targets_batch(job.forward(), local.views, passes, options, workspace,
                                local.forward_nats, local.scores, wanted, local.parsed);
  };
  try {
    compute_with(shared_, local.workspace);
    return {};
  } catch (const std::exception& error) {
    if (!is_memory_error(error)) throw;
    local.workspace.release_memory();
  }
  // A batch that exceeds its thread's share of the memory is scored while no other such batch is,
  // and its matrices are freed afterwards.
  const MutexLock alone(alone_mutex_);
  ++scored_alone_;
  domain::Workspace workspace;
  domain::DomainOptions options = alone_;
  if (const auto fits = matrix_that_fits())
    options.max_matrix_bytes =
        std::max<std::uint64_t>(1, std::min(options.max_matrix_bytes, *fits));
  try {
    compute_with(options, workspace);
  } catch (const domain::MatrixTooLarge& too_large) {
    return fail(ErrorCode::kResources, too_large.what(), {},
                "leave out the target, or search it on a machine with more memory");
  }
  local.alone_times += workspace.times();
  return {};
}

Result<Scored> Scorer::score(ModelJob& job, const std::vector<WaitingTarget>& batch,
                             ThreadState& local) {
  const double used = thread_seconds();
  local.views.clear();
  local.parsed.clear();
  Scored out;
  ResidueCopies copies;
  for (const WaitingTarget& target : batch) {
    local.views.push_back((*target.targets)[target.index]);
    HMMJIT_ASSIGN(local.views.back().residues,
                  copies.of(*target.targets, target.index, *job.hmm().alphabet));
    local.parsed.push_back(target.parsed.get());
    out.cells += target.cells;
  }
  const auto& by_target = options_.by_target;
  const auto passes = [&](std::size_t n, float nats) {
    return job.passes_forward(nats, batch[n].filter_nats, options_.filters.F3);
  };
  ModelThresholds candidate = job.thresholds;
  if (by_target) candidate.rules.Z = by_target->Z;
  const auto wanted = [&](std::size_t n, const domain::TargetScore& score) {
    if (!by_target) return is_candidate(candidate, score, index_of(batch[n]));
    return is_candidate(candidate, score,
                        by_target->indices ? (*by_target->indices)[job.index] : job.index);
  };
  HMMJIT_TRY(compute(job, local, passes, wanted));
  HMMJIT_TRY(verifier_.check_scores(job, local, passes, wanted));
  std::uint64_t passed = 0;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    // No Forward score: every path is impossible, as for a target of nothing but '*'.
    const float nats = local.forward_nats[n];
    const bool through = !std::isnan(nats) && passes(n, nats);
    passed += through;
    if (through && options_.filters.per_target != nullptr)
      options_.filters.per_target->forward(index_of(batch[n]));
    if (!local.scores[n] || !wanted(n, *local.scores[n])) continue;
    const TargetView& target = local.views[n];
    Hit& hit = out.hits.emplace_back();
    hit.name = target.name;
    hit.accession = target.accession;
    hit.description = target.description;
    hit.index = index_of(batch[n]);
    hit.length = target.length();
    hit.score = *std::move(local.scores[n]);
    if (!options_.keep_alignments) {
      for (domain::Domain& domain : hit.score.domains) domain.alignment = {};
    }
  }
  out.seconds = thread_seconds() - used;
  local.scoring_seconds += out.seconds;
  const MutexLock lock(job.mutex);
  job.counters.forward += passed;
  job.cpu_seconds += out.seconds;
  return out;
}

}  // namespace hmmjit::search_run
