// Reads the models of a search, calibrates those without score statistics, sets them up, and sends
// them over the targets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "search/distrusted_kernels.hpp"
#include "search/filter_tasks.hpp"
#include "search/model_input.hpp"
#include "search/model_job.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/result_queue.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"

namespace hmmjit::search_run {

/// Thread-safe, without a lock of its own.
class ModelFeed {
 public:
  ModelFeed(const SearchOptions& options, FilterBackend& backend, ModelInput& input,
            SearchTasks& tasks, ThreadStates& threads, SearchWindow& window,
            const DistrustedKernels& distrusted, ResultQueue& queue, PairDispatcher& pairs,
            FilterTasks& filters, SearchControl& control, SearchProgress& progress)
      : options_(options),
        backend_(backend),
        input_(input),
        tasks_(tasks),
        threads_(threads),
        window_(window),
        distrusted_(distrusted),
        queue_(queue),
        pairs_(pairs),
        filters_(filters),
        control_(control),
        progress_(progress) {}

  /// Sets up as many models as memory allows and threads need.
  void start();
  SearchWindow::Demand demand() const;
  /// For models that were searched a second time.
  std::uint64_t searched_again() const { return searched_again_; }

 private:
  void set_up();
  void set_up_again(const Again& again);
  Result<JobPtr> make_job(std::size_t index, Query query, double begun);
  // Of a job that has been set up by this thread since `used`.
  void activate(const JobPtr& job, double used);
  void fail(std::size_t index, Error error);

  const SearchOptions& options_;
  FilterBackend& backend_;
  ModelInput& input_;
  SearchTasks& tasks_;
  ThreadStates& threads_;
  SearchWindow& window_;
  const DistrustedKernels& distrusted_;
  ResultQueue& queue_;
  PairDispatcher& pairs_;
  FilterTasks& filters_;
  SearchControl& control_;
  SearchProgress& progress_;
  std::atomic<std::uint64_t> searched_again_{0};
};

}  // namespace hmmjit::search_run
