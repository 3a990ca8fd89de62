// Corrects a search after a device has computed wrong scores: the kernel is not used any more, and
// every model that has used it is searched again on the CPU.
#pragma once

#include <span>
#include <vector>

#include "search/distrusted_kernels.hpp"
#include "search/filter_tasks.hpp"
#include "search/kept_hits.hpp"
#include "search/model_job.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/result_queue.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Thread-safe, without a lock of its own. Called from within tasks of the job concerned, so that
/// the search cannot end in the meantime.
class Corrections final : public DifferenceHandler {
 public:
  Corrections(const SearchOptions& options, SearchTasks& tasks, gpu::GpuFilters* device,
              DistrustedKernels& distrusted, SearchWindow& window, ResultQueue& queue,
              KeptHits& hits, ScoringLoad& load, PairDispatcher& pairs, FilterTasks& filters,
              SearchControl& control)
      : options_(options),
        tasks_(tasks),
        device_(device),
        distrusted_(distrusted),
        window_(window),
        queue_(queue),
        hits_(hits),
        load_(load),
        pairs_(pairs),
        filters_(filters),
        control_(control) {}

  /// One line of warning; nothing that comes from such a kernel is used.
  void act_on(const JobPtr& job, const Difference& difference) override;
  /// The rest of the job is not done, since it will be searched again.
  void spoil(const JobPtr& job) override;

 private:
  void warn(const ModelJob& job, const Difference& difference,
            std::span<const gpu::UsedKernel> kernels) const;
  // All models that have used one of these are searched again.
  void recall(std::span<const gpu::UsedKernel> kernels);

  const SearchOptions& options_;
  SearchTasks& tasks_;
  gpu::GpuFilters* const device_;
  DistrustedKernels& distrusted_;
  SearchWindow& window_;
  ResultQueue& queue_;
  KeptHits& hits_;
  ScoringLoad& load_;
  PairDispatcher& pairs_;
  FilterTasks& filters_;
  SearchControl& control_;
};

}  // namespace hmmjit::search_run
