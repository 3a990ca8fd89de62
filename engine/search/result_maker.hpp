// Makes the complete result of a model that has ended: judges its hits and makes the text.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "search/kept_hits.hpp"
#include "search/model_job.hpp"
#include "search/result_queue.hpp"
#include "search/search_tasks.hpp"
#include "search/search_window.hpp"

namespace hmmjit::search_run {

/// Thread-safe, without a lock of its own.
class ResultMaker {
 public:
  ResultMaker(SearchContext& search, SearchWindow& window, KeptHits& hits, ResultQueue& queue,
              const ResultSink& sink, SearchControl& control)
      : search_(search),
        window_(window),
        hits_(hits),
        queue_(queue),
        sink_(sink),
        control_(control) {}

  /// Notes that a task of the job has ended; the last one makes its result.
  void end_task(const JobPtr& job) {
    if (--job->pending == 0 && !search_.tasks.stopped()) finish(*job);
  }

 private:
  // A model with all its hits, whose text is being made.
  struct Finished {
    ModelResult result;
    std::size_t reserved = 0;  // bytes in the queue, its text included
    std::atomic<std::size_t> parts_left{0};
  };
  using FinishedPtr = std::shared_ptr<Finished>;

  void finish(ModelJob& job);
  // Fails with errors that end the search.
  Status fill(ModelJob& job, std::vector<Hit>& hits, Finished& finished);
  void make_text(const FinishedPtr& finished);
  void make_part(const FinishedPtr& finished, std::size_t part);

  SearchContext& search_;
  SearchWindow& window_;
  KeptHits& hits_;
  ResultQueue& queue_;
  const ResultSink& sink_;
  SearchControl& control_;
};

}  // namespace hmmjit::search_run
