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
  ModelFeed(SearchContext& search, ModelInput& input, SearchWindow& window, ResultQueue& queue,
            PairDispatcher& pairs, FilterTasks& filters, SearchControl& control)
      : search_(search),
        input_(input),
        window_(window),
        queue_(queue),
        pairs_(pairs),
        filters_(filters),
        control_(control) {}

  /// Sets up as many models as memory allows and threads need.
  void start();
  SearchWindow::Demand demand() const;

 private:
  void set_up();
  Result<JobPtr> make_job(std::size_t index, Query query, double begun);
  // `used`: this thread's CPU time when the set-up began.
  void activate(const JobPtr& job, double used);
  void fail(std::size_t index, Error error);

  SearchContext& search_;
  ModelInput& input_;
  SearchWindow& window_;
  ResultQueue& queue_;
  PairDispatcher& pairs_;
  FilterTasks& filters_;
  SearchControl& control_;
};

}  // namespace hmmjit::search_run
