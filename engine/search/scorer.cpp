#include "search/scorer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/memory.hpp"
#include "model/residue_copies.hpp"
#include "search/target_counters.hpp"

namespace hmmjit::search_run {
namespace {

// Scoring costs about ten times as much per cell as filtering. Larger targets are tasks of their
// own and start before smaller work; the others are batched, because targets of similar size share
// vectors.
constexpr std::uint64_t kLargeTargetCells = 4'000'000;

std::uint64_t microseconds(double seconds) { return static_cast<std::uint64_t>(1e6 * seconds); }

std::uint64_t index_of(const WaitingTarget& target) {
  return target.targets->first_index() + target.index;
}

}  // namespace

void Scorer::add(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output) {
  search_.threads.local().times += output.times;
  const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
  search_.progress.cells += output.counters.residues * M;
  search_.progress.filter_microseconds += microseconds(output.times.total());
  std::uint64_t found = 0, found_left = 0;
  const MutexLock lock(job.mutex);
  for (const Survivor& survivor : output.survivors) {
    const auto L = static_cast<std::uint64_t>(targets->length(survivor.index));
    const std::uint64_t left = cells_left(L, M, survivor.parsed.get());
    job.waiting.push_back(
        {targets, survivor.index, survivor.filter_nats, L * M, left, survivor.parsed});
    found += L * M;
    found_left += left;
  }
  search_.progress.scoring_cells_found += found;
  search_.load.found(found_left);
  job.counters += output.counters;
  job.cpu_seconds += output.times.total();
}

void Scorer::submit_waiting(const JobPtr& job, std::size_t enough) {
  std::vector<WaitingTarget> targets;
  {
    const MutexLock lock(job->mutex);
    if (job->waiting.size() < (collecting_ ? enough : 1)) return;
    targets.swap(job->waiting);
  }
  submit(job, std::move(targets));
}

void Scorer::submit(const JobPtr& job, std::vector<WaitingTarget> targets) {
  if (targets.empty()) return;
  // Similar sizes next to each other; ties in input order, which makes timings repeatable.
  std::sort(targets.begin(), targets.end(), [](const WaitingTarget& a, const WaitingTarget& b) {
    return a.cells_left != b.cells_left ? a.cells_left > b.cells_left : a.index < b.index;
  });
  const auto submit = [&](std::size_t from, std::size_t to, TaskClass task_class, double rank) {
    ++job->pending;
    search_.tasks.submit(
        task_class, rank,
        [this, job,
         batch = std::vector<WaitingTarget>(targets.begin() + static_cast<std::ptrdiff_t>(from),
                                            targets.begin() + static_cast<std::ptrdiff_t>(to))] {
          score(job, batch);
        });
  };
  std::uint64_t total = 0;
  for (const WaitingTarget& target : targets) total += target.cells_left;
  const auto threads = static_cast<std::size_t>(search_.tasks.threads());
  // A few tasks per thread balance the load, so the size of a large target and of a batch grows
  // with the amount of work, until the special states of its rows would take too much memory.
  constexpr std::uint64_t kMostRows = std::uint64_t{1} << 16;
  const std::uint64_t fair =
      beside_device_ ? 0
                     : std::min(total / (4 * threads),
                                kMostRows * static_cast<std::uint64_t>(job->model->hmm.M));
  std::size_t at = 0;
  for (; at < targets.size() && targets[at].cells_left > std::max(kLargeTargetCells, fair); ++at)
    submit(at, at + 1, TaskClass::kLargeDomain, -static_cast<double>(targets[at].cells_left));
  const std::size_t share = (targets.size() - at) / threads + 1;
  const std::size_t batch = std::clamp(share, kSmallestBatch, kLargestBatch);
  // The last targets of a device reach all threads at once: no thread should have many of them.
  const std::uint64_t most =
      !beside_device_ ? std::max(2 * kLargeTargetCells, fair)
      : gpu::host_is_idle(search_.load.host_load(threads, search_.tasks.waiting()))
          ? kLargeTargetCells / 4
          : kLargeTargetCells / 2;
  while (at < targets.size()) {
    std::size_t end = at;
    std::uint64_t cells = 0;
    while (end < targets.size() && end - at < batch && cells < most)
      cells += targets[end++].cells_left;
    submit(at, end, TaskClass::kDomain, static_cast<double>(job->index));
    at = end;
  }
}

Status Scorer::compute(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) {
  local.forward_nats.assign(local.views.size(), 0.0f);
  local.scores.assign(local.views.size(), std::nullopt);
  try {
    domain::score_targets_batch(job.forward(), local.views, passes, shared_, local.workspace,
                                local.forward_nats, local.scores, wanted, local.parsed);
    return {};
  } catch (const std::exception& error) {
    // A batch that exceeds its thread's share of the memory is scored while no other such batch is,
    // and its matrices are freed afterwards.
    if (!is_memory_error(error)) throw;
    local.workspace.release_memory();
    return compute_alone(job, local, passes, wanted);
  }
}

Status Scorer::compute_alone(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                             const domain::WantedTarget& wanted) {
  const MutexLock alone(alone_mutex_);
  ++scored_alone_;
  local.forward_nats.assign(local.views.size(), 0.0f);
  local.scores.assign(local.views.size(), std::nullopt);
  domain::Workspace workspace;
  domain::DomainOptions options = alone_;
  if (const auto fits = matrix_that_fits())
    options.max_matrix_bytes =
        std::max<std::uint64_t>(1, std::min(options.max_matrix_bytes, *fits));
  try {
    domain::score_targets_batch(job.forward(), local.views, passes, options, workspace,
                                local.forward_nats, local.scores, wanted, local.parsed);
  } catch (const domain::MatrixTooLarge& too_large) {
    return fail(ErrorCode::kResources, too_large.what(), {},
                "leave out the target, or search it on a machine with more memory");
  }
  local.alone_times += workspace.times();
  return {};
}

void Scorer::score(const JobPtr& job, const std::vector<WaitingTarget>& batch) {
  if (search_.tasks.stopped()) return results_.end_task(job);
  ThreadState& local = search_.threads.local();
  const double begun = now_seconds(), used = thread_seconds();
  local.views.clear();
  local.parsed.clear();
  std::uint64_t cells = 0, left = 0;
  ResidueCopies copies;
  for (const WaitingTarget& target : batch) {
    local.views.push_back((*target.targets)[target.index]);
    const auto residues = copies.of(*target.targets, target.index, *job->model->hmm.alphabet);
    if (!residues) return search_.tasks.abort(residues.error());
    local.views.back().residues = *residues;
    local.parsed.push_back(target.parsed.get());
    cells += target.cells;
    left += target.cells_left;
  }
  const auto passes = [&](std::size_t n, float nats) {
    return job->passes_forward(nats, batch[n].filter_nats, search_.options.filters.F3);
  };
  ModelThresholds candidate = job->thresholds;
  if (search_.options.by_target) candidate.rules.Z = search_.options.by_target->Z;
  const auto wanted = [&](std::size_t n, const domain::TargetScore& score) {
    return is_candidate(candidate, score,
                        search_.options.by_target ? job->index : index_of(batch[n]));
  };
  if (auto status = compute(*job, local, passes, wanted); !status)
    return search_.tasks.abort(status.error());
  verifier_.check_scores(job, local, passes, wanted);
  std::vector<Hit> hits;
  std::uint64_t passed = 0;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    // No Forward score: every path is impossible, as for a target of nothing but '*'.
    const float nats = local.forward_nats[n];
    const bool through = !std::isnan(nats) && passes(n, nats);
    passed += through;
    if (through && search_.options.by_target)
      search_.options.by_target->counters->forward(index_of(batch[n]));
    if (!local.scores[n] || !wanted(n, *local.scores[n])) continue;
    const TargetView& target = local.views[n];
    Hit& hit = hits.emplace_back();
    hit.name = target.name;
    hit.accession = target.accession;
    hit.description = target.description;
    hit.index = index_of(batch[n]);
    hit.length = target.length();
    hit.score = *std::move(local.scores[n]);
    if (!search_.options.keep_alignments) {
      for (domain::Domain& domain : hit.score.domains) domain.alignment = {};
    }
  }
  search_.tasks.trace("scoring", begun);
  const double seconds = thread_seconds() - used;
  local.scoring_seconds += seconds;
  search_.progress.scoring_cells += cells;
  search_.progress.scoring_microseconds += microseconds(seconds);
  search_.load.scored(left, seconds);
  {
    const MutexLock lock(job->mutex);
    job->counters.forward += passed;
    job->cpu_seconds += seconds;
  }
  if (auto kept = hits_.add(*job, hits); !kept) return search_.tasks.abort(kept.error());
  results_.end_task(job);
}

}  // namespace hmmjit::search_run
