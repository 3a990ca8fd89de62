#include "search/filter_tasks.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {
namespace {

std::uint64_t passed_cells(const ModelJob& job, const TargetBlock& targets,
                           const gpu::FilteredBlock& filtered) {
  const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
  std::uint64_t cells = 0;
  for (std::size_t i = 0; i < filtered.passed.size(); ++i) {
    cells += cells_left(static_cast<std::uint64_t>(targets.length(filtered.passed[i])), M,
                        filtered.parsed.empty() ? nullptr : filtered.parsed[i].get());
  }
  return cells;
}

}  // namespace

void FilterTasks::submit(const JobPtr& job, const TargetsPtr& block) {
  const TargetBlock& targets = *block;
  const auto M = static_cast<std::uint64_t>(job->model->hmm.M);
  // Ranges of about equal work, the last included.
  const std::uint64_t cells = targets.residue_count() * M, each = search_.options.task_cells;
  const std::uint64_t parts = std::max<std::uint64_t>(1, (cells + each / 2) / each);
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
  waiting_ += ranges.size();
  for (const auto& [from, to] : ranges) {
    search_.tasks.submit(
        TaskClass::kFilter, static_cast<double>(job->index),
        [this, job, block, first = from, end = to] { filter(job, block, first, end); });
  }
}

void FilterTasks::filter_now(const JobPtr& job, const TargetsPtr& targets) {
  job->hold();
  ++waiting_;
  filter(job, targets, 0, targets->size());
}

void FilterTasks::filter(const JobPtr& job, const TargetsPtr& targets, std::size_t begin,
                         std::size_t end) {
  if (--waiting_ < low_water(search_.tasks.threads()) && !search_.tasks.stopped())
    control_.start_models();
  if (!search_.tasks.stopped()) {
    const double begun = now_seconds();
    FilterOutput& output = cleared_output();
    const Status status =
        job->filters->run(*targets, begin, end, search_.threads.local().filter_scratch, output);
    if (!status) return search_.tasks.abort(status.error());
    scorer_.add(*job, targets, output);
    search_.tasks.trace("filters", begun);
  }
  end_filter(job);
}

FilterOutput& FilterTasks::cleared_output() {
  FilterOutput& output = search_.threads.local().filtered;
  output.survivors.clear();
  output.counters = {};
  output.times = {};
  return output;
}

void FilterTasks::submit_delivered(const JobPtr& job, std::vector<DeviceUnit> delivered,
                                   bool early) {
  // Enough work for a task, and few enough to balance the load.
  constexpr std::size_t kTargets = 256;
  std::vector<DeviceUnit> units;
  std::size_t targets = 0;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    DeviceUnit& unit = delivered[i];
    targets += unit.filtered.open.size() + unit.filtered.passed.size();
    unit.cells = passed_cells(*job, *unit.targets, unit.filtered);
    search_.load.found(unit.cells);
    units.push_back(std::move(unit));
    if (targets < kTargets && i + 1 < delivered.size()) continue;
    ++waiting_;
    search_.tasks.submit(TaskClass::kFilter, static_cast<double>(job->index),
                         [this, job, units = std::exchange(units, {}), early] {
                           filter_delivered(job, units, early);
                         });
    targets = 0;
  }
}

void FilterTasks::filter_delivered(const JobPtr& job, const std::vector<DeviceUnit>& units,
                                   bool early) {
  --waiting_;
  const double begun = now_seconds();
  for (const DeviceUnit& unit : units) {
    if (search_.tasks.stopped()) break;
    const TargetBlock& targets = *unit.targets;
    verifier_.check_block(job, targets, unit.filtered.sample);
    search_.load.dropped(unit.cells);
    if (search_.tasks.stopped()) break;
    FilterOutput& output = cleared_output();
    const Status status = job->filters->run_survivors(
        targets, unit.filtered, search_.threads.local().filter_scratch, output);
    if (!status) return search_.tasks.abort(status.error());
    if (!early) {
      output.counters.targets += targets.size();
      output.counters.residues += targets.residue_count();
    }
    scorer_.add(*job, unit.targets, output);
  }
  search_.tasks.trace("filters after device", begun);
  // Targets that come early take longest: they are scored at once.
  if (early && !search_.tasks.stopped()) scorer_.submit_waiting(job);
  for (std::size_t i = 0; i < units.size(); ++i) end_filter(job);
}

void FilterTasks::end_filter(const JobPtr& job) {
  const bool last = --job->filters_pending == 0;
  if (!search_.tasks.stopped()) {
    // Survivors wait until they fill a batch, unless they hold blocks that must be released, or
    // threads are idle.
    const bool idle = waiting_ < static_cast<std::uint64_t>(search_.tasks.threads());
    const std::size_t batch = idle ? Scorer::kSmallestBatch : 2 * Scorer::kLargestBatch;
    scorer_.submit_waiting(job, last ? 1 : batch);
  }
  results_.end_task(job);
}

}  // namespace hmmjit::search_run
