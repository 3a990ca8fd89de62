// Computes some of a device's results again on the CPU and compares them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "search/model_job.hpp"
#include "search/search_tasks.hpp"
#include "search/verification.hpp"

namespace hmmjit::search_run {

/// A result on which a device and the CPU differ. Values in nats, or numbers of targets.
struct Difference {
  plan::Stage stage;        ///< whose kernels are wrong
  std::string target = {};  ///< empty: a list of targets
  std::string device, cpu;  ///< their results
};

/// The first difference ends the search with an error that names the kernel. Thread-safe, without a
/// lock of its own.
class Verifier {
 public:
  /// `alone`: memory limits of a thread that computes a target while no other thread does.
  Verifier(const SearchOptions& options, SearchTasks& tasks, ThreadStates& threads,
           const domain::DomainOptions& alone, SearchProgress& progress)
      : verification_(options.verify),
        F3_(options.filters.F3),
        tasks_(tasks),
        threads_(threads),
        alone_(alone),
        progress_(progress) {}

  bool off() const { return verification_.off(); }
  /// The targets that a chain over `blocks` blocks with these kernels must return for checks.
  gpu::SampleRequest sample(ModelJob& job, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks);
  /// Records the kernels that a block was computed with, and checks its sampled targets.
  void check_block(const JobPtr& job, const TargetBlock& targets, const gpu::BlockSample& sample);
  /// Scores some targets again that a device has parsed. `local` holds a batch with its scores.
  /// With --seed 0, targets whose scores depend on sampled traces are skipped.
  void check_scores(const JobPtr& job, const ThreadState& local,
                    const domain::PassesForward& passes, const domain::WantedTarget& wanted);
  void add_to(SearchStatistics& statistics) const;

 private:
  void end_search(ModelJob& job, const Difference& difference);
  std::optional<Difference> check_target(ModelJob& job, const TargetBlock& targets,
                                         const gpu::SampledTarget& target);

  Verification verification_;
  const double F3_;
  SearchTasks& tasks_;
  ThreadStates& threads_;
  const domain::DomainOptions& alone_;
  SearchProgress& progress_;
};

}  // namespace hmmjit::search_run
