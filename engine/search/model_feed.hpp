// Reads the models of a search, calibrates those without score statistics, sets them up, and sends
// them over the targets.
#pragma once

#include <cstddef>
#include <cstdint>

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
            ResultQueue& queue, PairDispatcher& pairs, FilterTasks& filters,
            SearchControl& control, SearchProgress& progress)
      : options_(options),
        backend_(backend),
        input_(input),
        tasks_(tasks),
        threads_(threads),
        window_(window),
        queue_(queue),
        pairs_(pairs),
        filters_(filters),
        control_(control),
        progress_(progress) {}

  /// Sets up as many models as memory allows and threads need.
  void start();
  SearchWindow::Demand demand() const;

 private:
  void set_up();
  Result<JobPtr> make_job(std::size_t index, Query query, double begun);
  // `used`: this thread's CPU time when the set-up began.
  void activate(const JobPtr& job, double used);
  void fail(std::size_t index, Error error);

  const SearchOptions& options_;
  FilterBackend& backend_;
  ModelInput& input_;
  SearchTasks& tasks_;
  ThreadStates& threads_;
  SearchWindow& window_;
  ResultQueue& queue_;
  PairDispatcher& pairs_;
  FilterTasks& filters_;
  SearchControl& control_;
  SearchProgress& progress_;
};

}  // namespace hmmjit::search_run
