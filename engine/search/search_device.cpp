#include <cmath>
#include <random>

#include "model/residue_copies.hpp"
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
  // Whether a target was told can only be checked where all that were are told together.
  if (options_.verify > 0) return false;
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

bool Run::hungry() const {
  // A few tasks ahead: what threads have not begun when the device is through is done too late.
  // Much may be behind a task that has only just been submitted.
  constexpr double kAheadSeconds = 0.025;
  return pool_.waiting() < static_cast<std::size_t>(pool_.threads() + 3) / 4 &&
         seconds_left() < kAheadSeconds;
}

double Run::seconds_left() const {
  const std::uint64_t done = cells_done_;
  const double seconds =
      done > 0 ? 1e-6 * static_cast<double>(microseconds_done_) / static_cast<double>(done)
               : kFirstCellSeconds;
  return seconds * static_cast<double>(cells_left_) / pool_.threads();
}

void Run::filter_behind_device(const JobPtr& job, const std::vector<DeviceUnit>& units,
                               bool early) {
  --queued_filters_;
  const double begun = now_seconds();
  for (const DeviceUnit& unit : units) {
    if (stopped()) break;
    const TargetBlock& targets = unit.block->targets;
    if (options_.verify > 0 && !verified(*job, targets, unit.filtered)) return;
    FilterOutput& output = cleared_output();
    const Status status = job->filters->run_survivors(targets, unit.filtered, output);
    if (!status) return abort_run(status.error());
    if (!early) {
      output.counters.targets += targets.size();
      output.counters.residues += targets.residue_count();
    }
    keep_survivors(*job, unit.block, output);
    cells_left_ -= unit.cells;
  }
  trace("filters behind device", begun);
  // What comes early is what would take longest: the rest should find it done.
  if (early && !stopped()) submit_waiting(job);
  for (std::size_t i = 0; i < units.size(); ++i) end_filter(job);
}

bool Run::verified(ModelJob& job, const TargetBlock& targets, const gpu::FilteredBlock& filtered) {
  if (targets.size() == 0) return true;
  std::minstd_rand random(static_cast<std::uint32_t>(job.index * 7919 + targets.first_index() + 1));
  std::size_t checks = static_cast<std::size_t>(options_.verify);
  if (job.blocks_offered > 1) checks = (checks + job.blocks_offered - 1) / job.blocks_offered;
  const std::size_t told = filtered.open.size() + filtered.passed.size();
  for (std::size_t n = 0; n < checks; ++n) {
    // Every other check looks at a target the device told of: they are few.
    std::size_t index = random() % targets.size();
    if (n % 2 == 1 && told > 0) {
      const std::size_t pick = random() % told;
      index = pick < filtered.open.size() ? filtered.open[pick].index
                                          : filtered.passed[pick - filtered.open.size()];
    }
    const auto open = std::ranges::lower_bound(filtered.open, index, {}, &gpu::MsvSurvivor::index);
    const bool is_open = open != filtered.open.end() && open->index == index;
    const bool passed = std::ranges::binary_search(filtered.passed, index);
    const bool agrees = is_open ? job.filters->agrees(targets, *open)
                                : passed == passes_filters(job, targets, index, passed);
    if (agrees) {
      ++verified_;
      continue;
    }
    abort_run({ErrorCode::kInternal,
               "GPU and CPU disagree on target " + std::string(targets[index].name),
               "model " + job.model->hmm.name, "use --device cpu and report this"});
    return false;
  }
  return true;
}

bool Run::verified_scores(ModelJob& job, ThreadState& local, const domain::PassesForward& passes,
                          const domain::WantedTarget& wanted) {
  auto checks = static_cast<std::size_t>(options_.verify);
  domain::Workspace workspace;
  for (std::size_t n = 0; n < local.parsed.size() && checks > 0; ++n) {
    if (local.parsed[n] == nullptr) continue;
    --checks;
    float nats = 0;
    std::optional<domain::TargetScore> score;
    domain::score_targets_batch(
        job.forward(), {&local.views[n], 1}, [&](std::size_t, float v) { return passes(n, v); },
        alone_options_, workspace, {&nats, 1}, {&score, 1},
        [&](std::size_t, const domain::TargetScore& s) { return wanted(n, s); });
    const bool same_nats =
        nats == local.forward_nats[n] || (std::isnan(nats) && std::isnan(local.forward_nats[n]));
    if (same_nats && score == local.scores[n]) {
      ++verified_;
      continue;
    }
    abort_run({ErrorCode::kInternal,
               "GPU and CPU disagree on the domains of target " + std::string(local.views[n].name),
               "model " + job.model->hmm.name, "use --device cpu and report this"});
    return false;
  }
  return true;
}

bool Run::passes_filters(ModelJob& job, const TargetBlock& targets, std::size_t index,
                         bool without_forward) {
  FilterOutput output;
  if (!job.filters->run(targets, index, index + 1, output)) return false;
  if (output.survivors.empty()) return false;
  if (without_forward) return true;
  ResidueCopies copies;
  const auto residues = copies.of(targets, index, *job.model->hmm.alphabet);
  if (!residues) return false;
  const std::optional<float> nats =
      domain::forward_filter(job.forward(), *residues, locals_.local().workspace);
  return nats && passes_forward(job, *nats, output.survivors.front().filter_nats);
}

}  // namespace hmmjit::search_run
