#include "search/result_queue.hpp"

namespace hmmjit::search_run {
void ResultQueue::fail(std::size_t index, Error error) {
  const MutexLock lock(mutex_);
  if (!failed_ || index < failed_->first) failed_.emplace(index, std::move(error));
}

bool ResultQueue::reserve(std::size_t bytes, bool needed) {
  const MutexLock lock(mutex_);
  if (!needed && waiting_bytes_ + reserved_bytes_ + bytes > budget_) return false;
  reserved_bytes_ += bytes;
  return true;
}

void ResultQueue::unreserve(std::size_t bytes) {
  const MutexLock lock(mutex_);
  reserved_bytes_ -= bytes;
}

void ResultQueue::add(ModelResult&& result, std::size_t bytes, std::size_t reserved) {
  const MutexLock lock(mutex_);
  reserved_bytes_ -= reserved;
  waiting_bytes_ += bytes;
  const std::size_t index = result.index;
  done_.emplace(index, Done{std::move(result), bytes});
}

Status ResultQueue::hand_over(const ModelResult& result, Delivered& sums) {
  const double begun = now_seconds(), used = thread_seconds();
  sums.counters += result.hits.counters;
  sums.hits += result.hits.reported;
  for (const Hit& hit : result.hits.hits)
    sums.domains += static_cast<std::uint64_t>(hit.reported_domains);
  ++search_.progress.results_delivered;
  const Status status = sink_.receive(result);
  if (result.stored != nullptr) sums.domains += result.stored->domains_reported();
  sums.seconds += thread_seconds() - used;
  search_.tasks.trace("output", begun);
  return status;
}

bool ResultQueue::deliver() {
  MutexLock lock(mutex_);
  if (delivering_) return false;
  delivering_ = true;
  bool any = false;
  while (!search_.tasks.stopped()) {
    if (failed_ && failed_->first == next_) {
      search_.tasks.abort(failed_->second);
      break;
    }
    auto next = done_.extract(next_);
    if (next.empty()) break;
    const std::size_t bytes = next.mapped().bytes;
    Delivered sums = delivered_;
    lock.unlock();
    const Status status = hand_over(next.mapped().result, sums);
    if (!status) search_.tasks.abort(status.error());
    next = {};
    lock.lock();
    delivered_ = sums;
    waiting_bytes_ -= bytes;
    search_.progress.models_done = ++next_;
    any = true;
  }
  delivering_ = false;
  return any;
}

bool ResultQueue::full() const {
  const MutexLock lock(mutex_);
  return waiting_bytes_ >= budget_;
}

bool ResultQueue::empty() const {
  const MutexLock lock(mutex_);
  return done_.empty();
}

void ResultQueue::add_to(SearchStatistics& statistics) const {
  const MutexLock lock(mutex_);
  statistics.models = next_;
  statistics.counters += delivered_.counters;
  statistics.hits_reported += delivered_.hits;
  statistics.domains_reported += delivered_.domains;
  statistics.report_seconds += delivered_.seconds;
}

}  // namespace hmmjit::search_run
