#include "search/search_run.hpp"

namespace hmmjit::search_run {
namespace {

// Seconds that a thread takes for one of their cells, until the first have been scored.
constexpr double kFirstCellSeconds = 4e-9;

}  // namespace

void Run::submit_unit(const JobPtr& job, BlockId block) {
  submit_task(TaskClass::kFilter, static_cast<double>(job->index), [this, job, block] {
    if (!stopped()) take_unit(job, block);
  });
}

void Run::take_unit(const JobPtr& job, BlockId block) {
  const bool open = board_.is_open(job->index, block);
  if (open && device_->serves(job->index, block)) return;
  const TargetsPtr targets = board_.take_for_host(job->index, block);
  if (targets == nullptr) return;
  if (open) {
    // While a device may still come, in one piece, so that no more is taken than is worked on.
    hold_job(*job);
    ++queued_filters_;
    filter(job, targets, 0, targets->size());
  } else {
    submit_ranges(job, targets);
  }
  end_filter(job);
}

void Run::left_to_host(ModelId model, BlockId block) noexcept {
  guarded([&] {
    if (const JobPtr job = device_job(model)) submit_unit(job, block);
  });
}

JobPtr Run::device_job(ModelId model) {
  const std::lock_guard lock(mutex_);
  const auto found = device_jobs_.find(model);
  return found == device_jobs_.end() ? nullptr : found->second;
}

void Run::deliver(ModelId model, std::vector<gpu::Delivery> pairs) {
  guarded([&] {
    std::vector<DeviceUnit> units;
    units.reserve(pairs.size());
    for (gpu::Delivery& pair : pairs) units.push_back({pair.claim.finish(), std::move(pair.found)});
    submit_delivered(device_job(model), std::move(units), false);
  });
}

bool Run::deliver_early(ModelId model, std::vector<gpu::EarlyDelivery> pairs) {
  guarded([&] {
    const JobPtr job = device_job(model);
    std::vector<DeviceUnit> units;
    units.reserve(pairs.size());
    for (gpu::EarlyDelivery& pair : pairs) {
      hold_job(*job);
      units.push_back({std::move(pair.targets), std::move(pair.found)});
    }
    submit_delivered(job, std::move(units), true);
  });
  return true;
}

std::uint64_t Run::passed_cells(const ModelJob& job, const TargetBlock& targets,
                                const gpu::FilteredBlock& filtered) {
  const auto M = static_cast<std::uint64_t>(job.model->hmm.M);
  std::uint64_t cells = 0;
  for (std::size_t i = 0; i < filtered.passed.size(); ++i) {
    cells += cells_left(static_cast<std::uint64_t>(targets.length(filtered.passed[i])), M,
                        filtered.parsed.empty() ? nullptr : filtered.parsed[i].get());
  }
  return cells;
}

void Run::submit_delivered(const JobPtr& job, std::vector<DeviceUnit> delivered, bool early) {
  // Enough for a task, few enough to balance.
  constexpr std::size_t kTargets = 256;
  std::vector<DeviceUnit> units;
  std::size_t targets = 0;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    DeviceUnit& unit = delivered[i];
    targets += unit.filtered.open.size() + unit.filtered.passed.size();
    unit.cells = passed_cells(*job, *unit.targets, unit.filtered);
    cells_left_ += unit.cells;
    units.push_back(std::move(unit));
    if (targets < kTargets && i + 1 < delivered.size()) continue;
    ++queued_filters_;
    submit_task(TaskClass::kFilter, static_cast<double>(job->index),
                [this, job, units = std::exchange(units, {}), early] {
                  filter_behind_device(job, units, early);
                });
    targets = 0;
  }
}

void Run::stopped(const Error& reason, bool demanded) {
  if (demanded) abort_run(reason);
}

gpu::HostLoad Run::load() const {
  const std::uint64_t done = cells_done_;
  const double seconds =
      done > 0 ? 1e-6 * static_cast<double>(microseconds_done_) / static_cast<double>(done)
               : kFirstCellSeconds;
  const auto threads = static_cast<std::size_t>(pool_.threads());
  return {.seconds_left = seconds * static_cast<double>(cells_left_) / static_cast<double>(threads),
          .waiting = pool_.waiting(),
          .threads = threads};
}

void Run::filter_behind_device(const JobPtr& job, const std::vector<DeviceUnit>& units,
                               bool early) {
  --queued_filters_;
  const double begun = now_seconds();
  for (const DeviceUnit& unit : units) {
    if (stopped()) break;
    const TargetBlock& targets = *unit.targets;
    check_block(job, targets, unit.filtered.sample);
    cells_left_ -= unit.cells;
    if (job->spoiled) continue;
    FilterOutput& output = cleared_output();
    const Status status = job->filters->run_survivors(targets, unit.filtered, output);
    if (!status) return abort_run(status.error());
    if (!early) {
      output.counters.targets += targets.size();
      output.counters.residues += targets.residue_count();
    }
    keep_survivors(*job, unit.targets, output);
  }
  trace("filters behind device", begun);
  // What comes early is what would take longest: the rest should find it done.
  if (early && !stopped()) submit_waiting(job);
  for (std::size_t i = 0; i < units.size(); ++i) end_filter(job);
}

}  // namespace hmmjit::search_run
