#include <cmath>

#include "core/memory.hpp"
#include "model/residue_copies.hpp"
#include "model/score_statistics.hpp"
#include "search/search_run.hpp"
#include "search/target_counters.hpp"

namespace hmmjit::search_run {
namespace {

// Scoring a target costs some ten times as much per cell as filtering it. A target larger than
// this is a task of its own, begun before smaller work; the rest is batched, because equal work of
// different targets shares vectors.
constexpr std::uint64_t kLargeTargetCells = 4'000'000;
// Targets scored by one task: enough to fill vectors, few enough to balance.
constexpr std::size_t kSmallestBatch = 8, kLargestBatch = 64;

bool is_memory_error(const std::exception& error) {
  return dynamic_cast<const domain::MatrixTooLarge*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

std::uint64_t microseconds(double seconds) { return static_cast<std::uint64_t>(1e6 * seconds); }

}  // namespace

void Run::submit_filters(const JobPtr& job, const BlockPtr& block) {
  progress_.cells_queued +=
      block->targets.residue_count() * static_cast<std::uint64_t>(job->model->hmm.M);
  if (device_ == nullptr || job->again) return submit_ranges(job, targets_of(block));
  {
    const std::lock_guard lock(job->mutex);
    if (job->spoiled) return;
    hold_job(*job);
    board_.open(job->index, block->id, targets_of(block));
    ++job->blocks_offered;
  }
  device_->look_at_board();
  submit_unit(job, block->id);
}

void Run::submit_ranges(const JobPtr& job, const TargetsPtr& block) {
  const TargetBlock& targets = *block;
  const auto M = static_cast<std::uint64_t>(job->model->hmm.M);
  // Ranges of about equal work; the last is not left as a crumb.
  const std::uint64_t cells = targets.residue_count() * M;
  const std::uint64_t parts = std::max<std::uint64_t>(1, (cells + task_cells_ / 2) / task_cells_);
  const std::uint64_t share = targets.residue_count() / parts + 1;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::size_t begin = 0;
  std::uint64_t residues = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    residues += static_cast<std::uint64_t>(targets.length(i));
    if (residues >= share || i + 1 == targets.size()) {
      ranges.emplace_back(begin, i + 1);
      begin = i + 1;
      residues = 0;
    }
  }
  job->pending += static_cast<std::int64_t>(ranges.size());
  job->filters_pending += static_cast<std::int64_t>(ranges.size());
  queued_filters_ += ranges.size();
  for (const auto& [from, to] : ranges) {
    submit_task(TaskClass::kFilter, static_cast<double>(job->index),
                [this, job, block, first = from, end = to] { filter(job, block, first, end); });
  }
}

void Run::filter(const JobPtr& job, const TargetsPtr& targets, std::size_t begin, std::size_t end) {
  if (--queued_filters_ < low_water_ && !stopped()) start_models();
  if (!stopped() && !job->spoiled) {
    const double begun = now_seconds();
    FilterOutput& output = cleared_output();
    const Status status = job->filters->run(*targets, begin, end, output);
    if (!status) return abort_run(status.error());
    keep_survivors(*job, targets, output);
    trace("filters", begun);
  }
  end_filter(job);
}

FilterOutput& Run::cleared_output() {
  FilterOutput& output = locals_.local().filtered;
  output.survivors.clear();
  output.counters = {};
  output.times = {};
  return output;
}

std::uint64_t Run::cells_left(std::uint64_t L, std::uint64_t M, const ParsedTarget* parsed) {
  return parsed == nullptr ? L * M : L * M / 16 + 2 * parsed->residues_left() * M;
}

void Run::keep_survivors(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output) {
  locals_.local().times += output.times;
  const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
  progress_.cells += output.counters.residues * M;
  progress_.filter_microseconds += microseconds(output.times.total());
  std::uint64_t found = 0, found_left = 0;
  const std::lock_guard lock(job.mutex);
  for (const Survivor& survivor : output.survivors) {
    const auto L = static_cast<std::uint64_t>(targets->length(survivor.index));
    const std::uint64_t left = cells_left(L, M, survivor.parsed.get());
    job.waiting.push_back(
        {targets, survivor.index, survivor.filter_nats, L * M, left, survivor.parsed});
    found += L * M;
    found_left += left;
  }
  progress_.scoring_cells_found += found;
  cells_left_ += found_left;
  job.counters += output.counters;
  job.cpu_seconds += output.times.total();
}

bool Run::passes_forward(const ModelJob& job, float nats, float filter_nats) const {
  const Calibration& calibration = job.model->hmm.calibration;
  const float bits = nats_to_bits(nats - filter_nats);
  return !(exponential_survival(bits, calibration.forward_tau, calibration.forward_lambda) >
           options_.filters.F3);
}

void Run::end_filter(const JobPtr& job) {
  const bool last = --job->filters_pending == 0;
  if (!stopped()) {
    // Survivors wait until they fill batches, but not where they hold blocks that should go,
    // and not while threads have nothing else to do.
    const bool idle = queued_filters_ < static_cast<std::uint64_t>(pool_.threads());
    submit_waiting(job, last ? 1 : idle ? kSmallestBatch : 2 * kLargestBatch);
  }
  release(job);
}

void Run::submit_waiting(const JobPtr& job, std::size_t enough) {
  std::vector<WaitingTarget> targets;
  {
    const std::lock_guard lock(job->mutex);
    if (job->waiting.size() < (releasing_blocks_ ? 1 : enough)) return;
    targets.swap(job->waiting);
  }
  submit_scoring(job, std::move(targets));
}

void Run::hold_job(ModelJob& job) {
  ++job.pending;
  ++job.filters_pending;
}

void Run::submit_scoring(const JobPtr& job, std::vector<WaitingTarget> targets) {
  if (targets.empty()) return;
  // Equal sizes side by side; ties in input order only for the sake of repeatable timing.
  std::sort(targets.begin(), targets.end(), [](const WaitingTarget& a, const WaitingTarget& b) {
    return a.cells_left != b.cells_left ? a.cells_left > b.cells_left : a.index < b.index;
  });
  const auto submit = [&](std::size_t from, std::size_t to, TaskClass task_class, double rank) {
    ++job->pending;
    submit_task(task_class, rank,
                [this, job,
                 batch = std::vector<WaitingTarget>(
                     targets.begin() + static_cast<std::ptrdiff_t>(from),
                     targets.begin() + static_cast<std::ptrdiff_t>(to))] { score(job, batch); });
  };
  std::size_t at = 0;
  for (; at < targets.size() && targets[at].cells_left > kLargeTargetCells; ++at)
    submit(at, at + 1, TaskClass::kLargeDomain, -static_cast<double>(targets[at].cells_left));
  const std::size_t share = (targets.size() - at) / static_cast<std::size_t>(pool_.threads()) + 1;
  const std::size_t batch = std::clamp(share, kSmallestBatch, kLargestBatch);
  // A device leaves the last targets to all threads at once: none should have much of them.
  const std::uint64_t most = device_ == nullptr          ? 2 * kLargeTargetCells
                             : gpu::host_is_idle(load()) ? kLargeTargetCells / 4
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

void Run::score(const JobPtr& job, const std::vector<WaitingTarget>& batch) {
  if (job->spoiled) {
    for (const WaitingTarget& target : batch) cells_left_ -= target.cells_left;
    return release(job);
  }
  if (!stopped()) {
    ThreadState& local = locals_.local();
    const double begun = now_seconds(), used = thread_seconds();
    local.views.clear();
    local.parsed.clear();
    std::uint64_t cells = 0, left = 0;
    ResidueCopies copies;
    for (const WaitingTarget& target : batch) {
      local.views.push_back((*target.targets)[target.index]);
      const auto residues = copies.of(*target.targets, target.index, *job->model->hmm.alphabet);
      if (!residues) return abort_run(residues.error());
      local.views.back().residues = *residues;
      local.parsed.push_back(target.parsed.get());
      cells += target.cells;
      left += target.cells_left;
      if (target.parsed == nullptr) local.forward_cells += target.cells;
    }
    local.forward_nats.assign(batch.size(), 0.0f);
    local.scores.assign(batch.size(), std::nullopt);
    const auto index_of = [&](std::size_t n) {
      return batch[n].targets->first_index() + batch[n].index;
    };
    const auto passes = [&](std::size_t n, float nats) {
      return passes_forward(*job, nats, batch[n].filter_nats);
    };
    ModelThresholds candidate = job->thresholds;
    if (options_.by_target) candidate.rules.Z = options_.by_target->Z;
    const auto wanted = [&](std::size_t n, const domain::TargetScore& score) {
      return is_candidate(candidate, score, options_.by_target ? job->index : index_of(n));
    };
    const auto run = [&](const domain::DomainOptions& options, domain::Workspace& workspace) {
      domain::score_targets_batch(job->forward(), local.views, passes, options, workspace,
                                  local.forward_nats, local.scores, wanted, local.parsed);
    };
    try {
      run(shared_options_, local.workspace);
    } catch (const std::exception& error) {
      // A thread has its share of the memory. What needs more is done alone, so that several
      // such targets do not meet; the matrices are given back afterwards.
      if (!is_memory_error(error)) throw;
      local.workspace.release_memory();
      const std::lock_guard alone(alone_mutex_);
      ++statistics_.scored_alone;
      local.forward_nats.assign(batch.size(), 0.0f);
      local.scores.assign(batch.size(), std::nullopt);
      domain::Workspace workspace;
      domain::DomainOptions options = alone_options_;
      if (const auto fits = matrix_that_fits())
        options.max_matrix_bytes =
            std::max<std::uint64_t>(1, std::min(options.max_matrix_bytes, *fits));
      try {
        run(options, workspace);
      } catch (const domain::MatrixTooLarge& too_large) {
        return abort_run({ErrorCode::kResources,
                          too_large.what(),
                          {},
                          "leave out the target, or search it on a machine with more memory"});
      }
      local.alone_times += workspace.times();
    }
    if (!verification_.off()) check_scores(job, local, passes, wanted);
    std::vector<Hit> hits;
    std::uint64_t passed = 0;
    for (std::size_t n = 0; n < batch.size(); ++n) {
      // No Forward score: every path is impossible, as for a target of nothing but '*'.
      const float nats = local.forward_nats[n];
      const bool through = !std::isnan(nats) && passes(n, nats);
      passed += through;
      if (through && options_.by_target) options_.by_target->counters->forward(index_of(n));
      if (!local.scores[n] || !wanted(n, *local.scores[n])) continue;
      const TargetView& target = local.views[n];
      Hit& hit = hits.emplace_back();
      hit.name = target.name;
      hit.accession = target.accession;
      hit.description = target.description;
      hit.index = index_of(n);
      hit.length = target.length();
      hit.score = *std::move(local.scores[n]);
      if (!options_.keep_alignments) {
        for (domain::Domain& domain : hit.score.domains) domain.alignment = {};
      }
    }
    trace("scoring", begun);
    const double seconds = thread_seconds() - used;
    local.scoring_seconds += seconds;
    progress_.scoring_cells += cells;
    progress_.scoring_microseconds += microseconds(seconds);
    cells_left_ -= left;
    cells_done_ += left;
    microseconds_done_ += microseconds(seconds);
    {
      const std::lock_guard lock(job->mutex);
      job->counters.forward += passed;
      job->cpu_seconds += seconds;
    }
    if (auto kept = keep_hits(*job, hits); !kept) return abort_run(kept.error());
  }
  release(job);
}

}  // namespace hmmjit::search_run
