// Computes some of a device's results again on the CPU, and compares.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "search/distrusted_kernels.hpp"
#include "search/model_job.hpp"
#include "search/search_tasks.hpp"
#include "search/verification.hpp"

namespace hmmjit::search_run {

/// Where a device and the CPU differ. Values in nats, or numbers of targets.
struct Difference {
  plan::Stage stage;        ///< whose kernels are at fault
  std::string target = {};  ///< empty: of a list
  std::string device, cpu;  ///< what each of them says
};

/// Called after a difference.
class DifferenceHandler {
 public:
  virtual void act_on(const JobPtr& job, const Difference& difference) = 0;
  /// The job has used a kernel that is known to be wrong.
  virtual void spoil(const JobPtr& job) = 0;

 protected:
  ~DifferenceHandler() = default;
};

/// Thread-safe, without a lock of its own.
class Verifier {
 public:
  /// `alone`: memory of a thread that computes a target while no other does.
  Verifier(const SearchOptions& options, const SearchTasks& tasks, ThreadStates& threads,
           const DistrustedKernels& distrusted, const domain::DomainOptions& alone,
           DifferenceHandler& handler)
      : verification_(options.verify),
        F3_(options.filters.F3),
        tasks_(tasks),
        threads_(threads),
        distrusted_(distrusted),
        alone_(alone),
        handler_(handler) {}

  bool off() const { return verification_.off(); }
  /// The targets that a chain over so many blocks with these kernels is to bring back.
  gpu::SampleRequest sample(ModelJob& job, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks);
  /// Notes the kernels a block was computed with, and checks the targets that came with it.
  void check_block(const JobPtr& job, const TargetBlock& targets, const gpu::BlockSample& sample);
  /// Scores again some of what a device has gone on with after the filters: `local` holds a batch
  /// with its scores. With --seed 0 targets whose scores depend on sampled traces are left out.
  void check_scores(const JobPtr& job, const ThreadState& local,
                    const domain::PassesForward& passes, const domain::WantedTarget& wanted);
  void add_to(SearchStatistics& statistics) const;

 private:
  std::optional<Difference> check_target(ModelJob& job, const TargetBlock& targets,
                                         const gpu::SampledTarget& target);

  Verification verification_;
  const double F3_;
  const SearchTasks& tasks_;
  ThreadStates& threads_;
  const DistrustedKernels& distrusted_;
  const domain::DomainOptions& alone_;
  DifferenceHandler& handler_;
};

/// The stages that follow Forward, which are computed together.
bool is_domain_stage(plan::Stage stage);

}  // namespace hmmjit::search_run
