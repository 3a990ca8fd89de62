#include "search/search_tasks.hpp"

#include <algorithm>
#include <string>

namespace hmmjit::search_run {

SearchTasks::SearchTasks(const SearchOptions& options, bool held)
    : options_(options),
      held_(held),
      pool_(std::make_unique<TaskPool>(std::max(1, options.threads), options.lower_priority,
                                       [this] { warn_of_threads(); })) {}

void SearchTasks::warn_of_threads() const {
  if (!options_.on_warning) return;
  options_.on_warning("only " + std::to_string(pool_->threads()) + " of " +
                      std::to_string(options_.threads) +
                      " threads could be started; raise the limits on processes (ulimit -u) or "
                      "memory (ulimit -v)");
}

void SearchTasks::run(const std::function<void()>& first) {
  struct Stop {
    std::atomic<bool>& stopped;
    ~Stop() { stopped = true; }
  };
  const Stop stop{stopped_};
  guarded([&] {
    pool_->run([&] {
      if (held_) pool_->hold();
      first();
    });
  });
}

void SearchTasks::abort(Error error) {
  const MutexLock lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  release();
}

std::optional<Error> SearchTasks::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

}  // namespace hmmjit::search_run
