#include "search/search_run.hpp"

namespace hmmjit::search_run {
namespace {

// Seconds that a thread takes for one of their cells, until the first have been scored.
constexpr double kFirstCellSeconds = 4e-9;

}  // namespace

void Run::submit_unit(const JobPtr& job, std::uint64_t id) {
  submit_task(TaskClass::kFilter, static_cast<double>(job->index), [this, job, id] {
    if (stopped() || device_->serves(job->index, id)) return;
    filter_claimed(job, take_unit(*job, id));
  });
}

BlockPtr Run::take_unit(ModelJob& job, std::uint64_t id) {
  const std::lock_guard lock(job.mutex);
  const auto unit = std::ranges::find(job.unclaimed, id, &ModelJob::Unit::id);
  if (unit == job.unclaimed.end()) return nullptr;
  BlockPtr block = std::move(unit->block);
  job.unclaimed.erase(unit);
  return block;
}

void Run::filter_claimed(const JobPtr& job, const BlockPtr& block) {
  if (block == nullptr) return;
  if (device_stopped_) {
    submit_ranges(job, block);
  } else {
    ++job->pending;
    ++job->filters_pending;
    ++queued_filters_;
    filter(job, block, 0, block->targets.size());
  }
  end_filter(job);
}

JobPtr Run::device_job(std::uint64_t model) {
  const std::lock_guard lock(mutex_);
  const auto found = device_jobs_.find(model);
  return found == device_jobs_.end() ? nullptr : found->second;
}

std::vector<bool> Run::claim(std::uint64_t model, std::span<const std::uint64_t> blocks) {
  std::vector<bool> claimed(blocks.size(), false);
  const JobPtr job = stopped() ? nullptr : device_job(model);
  if (job == nullptr) return claimed;
  guarded([&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      BlockPtr block = take_unit(*job, blocks[i]);
      if (block == nullptr) continue;
      const std::lock_guard lock(mutex_);
      device_claims_.insert_or_assign({model, blocks[i]}, std::pair{job, std::move(block)});
      claimed[i] = true;
    }
  });
  return claimed;
}

std::pair<JobPtr, BlockPtr> Run::end_claim(std::uint64_t model, std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  auto node = device_claims_.extract({model, block});
  return std::move(node.mapped());
}

std::pair<JobPtr, BlockPtr> Run::hold_claim(std::uint64_t model, std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  auto claim = device_claims_.at({model, block});
  hold_job(*claim.first);
  return claim;
}

void Run::deliver(std::uint64_t model, std::span<const std::uint64_t> blocks,
                  std::vector<gpu::FilteredBlock> results) {
  submit_delivered(model, blocks, std::move(results), false);
}

bool Run::deliver_early(std::uint64_t model, std::span<const std::uint64_t> blocks,
                        std::vector<gpu::FilteredBlock> results) {
  submit_delivered(model, blocks, std::move(results), true);
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

void Run::submit_delivered(std::uint64_t model, std::span<const std::uint64_t> blocks,
                           std::vector<gpu::FilteredBlock> results, bool early) {
  // Enough for a task, few enough to balance.
  constexpr std::size_t kTargets = 256;
  guarded([&] {
    std::vector<DeviceUnit> units;
    std::size_t targets = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto [job, block] = early ? hold_claim(model, blocks[i]) : end_claim(model, blocks[i]);
      targets += results[i].open.size() + results[i].passed.size();
      const std::uint64_t cells = passed_cells(*job, block->targets, results[i]);
      cells_left_ += cells;
      units.push_back({std::move(block), std::move(results[i]), cells});
      if (targets < kTargets && i + 1 < blocks.size()) continue;
      ++queued_filters_;
      submit_task(TaskClass::kFilter, static_cast<double>(model),
                  [this, job = std::move(job), units = std::exchange(units, {}), early] {
                    filter_behind_device(job, units, early);
                  });
      targets = 0;
    }
  });
}

void Run::give_back(std::uint64_t model, std::span<const std::uint64_t> blocks) {
  for (const std::uint64_t id : blocks) {
    guarded([&] {
      auto [job, block] = end_claim(model, id);
      submit_task(TaskClass::kFilter, static_cast<double>(model),
                  [this, job = std::move(job), block = std::move(block)] {
                    if (!stopped()) submit_ranges(job, block);
                    end_filter(job);
                  });
    });
  }
}

void Run::decline(std::uint64_t model) {
  const JobPtr job = device_job(model);
  if (job == nullptr) return;
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(job->mutex);
    for (const ModelJob::Unit& unit : job->unclaimed) ids.push_back(unit.id);
  }
  for (const std::uint64_t id : ids) submit_unit(job, id);
}

void Run::stopped(const Error& reason, bool demanded) {
  if (demanded) return abort_run(reason);
  device_stopped_ = true;
  std::vector<std::uint64_t> models;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [model, job] : device_jobs_) models.push_back(model);
  }
  for (const std::uint64_t model : models) decline(model);
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
    const TargetBlock& targets = unit.block->targets;
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
    keep_survivors(*job, unit.block, output);
  }
  trace("filters behind device", begun);
  // What comes early is what would take longest: the rest should find it done.
  if (early && !stopped()) submit_waiting(job);
  for (std::size_t i = 0; i < units.size(); ++i) end_filter(job);
}

}  // namespace hmmjit::search_run
