#include "search/filtering.hpp"

namespace hmmjit::search_run {
namespace {

FilterOutput& cleared(FilterOutput& output) {
  output.survivors.clear();
  output.counters = {};
  output.times = {};
  return output;
}

// Notes counts and times, and adds the survivors to `found`.
void take(ModelJob& job, const TargetsPtr& targets, const FilterOutput& output, ThreadState& local,
          SearchProgress& progress, std::vector<WaitingTarget>& found) {
  local.times += output.times;
  progress.cells += output.counters.residues * job.nodes;
  progress.filter_microseconds += static_cast<std::uint64_t>(1e6 * output.times.total());
  for (const Survivor& survivor : output.survivors) {
    const auto L = static_cast<std::uint64_t>(targets->length(survivor.index));
    progress.scoring_cells_found += L * job.nodes;
    found.push_back({targets, survivor.index, survivor.filter_nats, L * job.nodes,
                     cells_left(L, job.nodes, survivor.parsed.get()), survivor.parsed});
  }
  const MutexLock lock(job.mutex);
  job.counters += output.counters;
  job.cpu_seconds += output.times.total();
}

}  // namespace

Result<std::vector<WaitingTarget>> filter(const FilterRange& work, ThreadState& local,
                                          SearchProgress& progress) {
  std::vector<WaitingTarget> found;
  FilterOutput& output = cleared(local.filtered);
  HMMJIT_TRY(
      work.job->filters->run(*work.targets, work.begin, work.end, local.filter_scratch, output));
  take(*work.job, work.targets, output, local, progress, found);
  return found;
}

Result<std::vector<WaitingTarget>> filter(const FilterRest& work, ThreadState& local,
                                          SearchProgress& progress) {
  std::vector<WaitingTarget> found;
  for (const DeviceUnit& unit : work.units) {
    FilterOutput& output = cleared(local.filtered);
    HMMJIT_TRY(work.job->filters->run_survivors(*unit.targets, unit.filtered, local.filter_scratch,
                                                output));
    if (!work.early) {
      output.counters.targets += unit.targets->size();
      output.counters.residues += unit.targets->residue_count();
    }
    take(*work.job, unit.targets, output, local, progress, found);
  }
  return found;
}

}  // namespace hmmjit::search_run
