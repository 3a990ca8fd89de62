#include "core/workers.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/threads.hpp"

namespace hmmjit {
namespace {
thread_local int t_lowered = 0;  // current priority reduction
}  // namespace

Workers::Workers(int threads, int lower_priority, std::function<void()> on_refusal)
    : lower_priority_(lower_priority),
      on_refusal_(std::move(on_refusal)),
      most_(static_cast<std::size_t>(std::max(threads, 1))) {
  const MutexLock lock(mutex_);
  threads_.reserve(most_);
}

int Workers::threads() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(most_);
}

void Workers::run(std::function<void()> work) {
  work_ = std::move(work);
  this->work();
  for (std::thread ending;; ending.join()) {  // a worker may add further ones
    const MutexLock lock(mutex_);
    if (threads_.empty()) break;
    ending = std::move(threads_.back());
    threads_.pop_back();
  }
  const MutexLock lock(mutex_);
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Workers::add() {
  {
    const MutexLock lock(mutex_);
    if (started_ == most_) return;
    try {
      threads_.emplace_back([this] { this->work(); });
      ++started_;
      return;
    } catch (const std::exception&) {  // no thread can be started, or no memory for it
      most_ = started_;
    }
  }
  if (!on_refusal_) return;
  try {
    on_refusal_();
  } catch (const std::bad_alloc&) {  // no memory even to report it
  }
}

void Workers::work() {
  if (t_lowered < lower_priority_)
    lower_thread_priority(lower_priority_ - std::exchange(t_lowered, lower_priority_));
  const FlushToZeroScope flush_to_zero;
  try {
    work_();
  } catch (...) {
    const MutexLock lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
}

void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::size_t most = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::atomic<std::size_t> next = 0;
  Workers workers(static_cast<int>(most));
  workers.run([&] {
    if (next < count) workers.add();  // each worker starts one more
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;  // no thread takes another
      throw;
    }
  });
}

}  // namespace hmmjit
