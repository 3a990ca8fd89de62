#include "search/result_queue.hpp"

#include <algorithm>

namespace hmmjit::search_run {
namespace {

// Of results that are not delivered before the end, since a difference may yet be found. What is
// delivered can still be confirmed or refuted, but not be made anew; what is held is written when
// nothing else is left to do.
constexpr std::size_t kHeldBytes = std::size_t{4} << 20;

}  // namespace

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

std::optional<Again> ResultQueue::add(ModelResult&& result, std::size_t bytes, std::size_t reserved,
                                      Retained&& retained) {
  const MutexLock lock(mutex_);
  reserved_bytes_ -= reserved;
  const std::size_t index = result.index;
  if (distrusted_.include_any(retained.kernels))
    return Again{index, std::move(retained.query), std::nullopt};
  waiting_bytes_ += bytes;
  done_.emplace(index, Done{std::move(result), bytes, std::move(retained)});
  return std::nullopt;
}

bool ResultQueue::holds_back() const {
  if (!hold_back_ || window_.complete()) return false;
  return waiting_bytes_ <= std::min<std::uint64_t>(kHeldBytes, budget_ / 4);
}

std::optional<ResultQueue::Done> ResultQueue::take_next() {
  const auto found = done_.find(next_);
  if (found == done_.end() || holds_back()) return std::nullopt;
  Done done = std::move(found->second);
  done_.erase(found);
  return done;
}

Status ResultQueue::hand_over(const ModelResult& result, Delivered& sums) {
  const double begun = now_seconds(), used = thread_seconds();
  sums.counters += result.hits.counters;
  sums.hits += result.hits.reported;
  for (const Hit& hit : result.hits.hits)
    sums.domains += static_cast<std::uint64_t>(hit.reported_domains);
  const Status status = sink_.receive(result);
  if (result.stored != nullptr) sums.domains += result.stored->domains_reported();
  sums.seconds += thread_seconds() - used;
  tasks_.trace("output", begun);
  return status;
}

bool ResultQueue::deliver() {
  MutexLock lock(mutex_);
  if (delivering_) return false;
  delivering_ = true;
  bool any = false;
  while (!tasks_.stopped()) {
    if (failed_ && failed_->first == next_) {
      tasks_.abort(failed_->second);
      break;
    }
    std::optional<Done> done = take_next();
    if (!done) break;
    if (auto again = distrusted_.keep(std::move(done->retained)))
      window_.search_again({*std::move(again)});
    Delivered sums = delivered_;
    lock.unlock();
    const Status status = hand_over(done->result, sums);
    if (!status) tasks_.abort(status.error());
    const std::size_t bytes = done->bytes;
    done.reset();
    lock.lock();
    delivered_ = sums;
    waiting_bytes_ -= bytes;
    progress_.models_done = ++next_;
    any = true;
  }
  delivering_ = false;
  return any;
}

std::vector<Again> ResultQueue::take_back() {
  std::vector<Again> out;
  const MutexLock lock(mutex_);
  for (auto at = done_.begin(); at != done_.end();) {
    Done& done = at->second;
    if (!distrusted_.include_any(done.retained.kernels)) {
      ++at;
      continue;
    }
    waiting_bytes_ -= done.bytes;
    out.push_back({at->first, std::move(done.retained.query), std::nullopt});
    at = done_.erase(at);
  }
  return out;
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
