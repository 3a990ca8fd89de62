#include "core/task_pool.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/threads.hpp"

namespace hmmjit {
namespace {
thread_local int t_lowered = 0;  // current priority reduction

// Returns the task's exception. The task is destroyed with all it holds.
std::exception_ptr run_task(int lower_priority, std::function<void()> task) {
  if (t_lowered < lower_priority)
    lower_thread_priority(lower_priority - std::exchange(t_lowered, lower_priority));
  std::exception_ptr failure;
  {
    const FlushToZeroScope flush_to_zero;
    try {
      // Destroyed here, since destructors of its captures may submit tasks.
      const std::function<void()> work = std::move(task);
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  return failure;
}

}  // namespace

TaskPool::TaskPool(int threads, int lower_priority, std::function<void()> on_refusal)
    : lower_priority_(lower_priority),
      on_refusal_(std::move(on_refusal)),
      most_workers_(static_cast<std::size_t>(std::max(threads, 1) - 1)) {
  const MutexLock lock(mutex_);
  workers_.reserve(most_workers_);
}

TaskPool::~TaskPool() {
  std::vector<std::thread> workers;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    workers.swap(workers_);
    workers_asleep_.wake_all();
  }
  for (std::thread& worker : workers) worker.join();
}

int TaskPool::threads() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(1 + most_workers_);
}

void TaskPool::run(std::function<void()> first) {
  std::deque<std::function<void()>> never_begun;  // of a failed run
  MutexLock lock(mutex_);
  queue_.push_back(std::move(first));
  while (!complete()) {
    if (task_waits()) {
      run_next();
    } else {
      runner_asleep_.sleep(lock);
    }
  }
  if (failure_ == nullptr) return;
  std::swap(never_begun, queue_);  // before workers could take them for tasks of the next run
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void TaskPool::submit(std::function<void()> work) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(work));
  ++busy_;  // keeps the pool alive until this thread has left it
  find_thread();
  no_longer_busy();
}

// Notifies under the lock: the pool may be destroyed as soon as the lock is free.
void TaskPool::no_longer_busy() {
  --busy_;
  if (complete()) runner_asleep_.wake_one();
}

void TaskPool::find_thread() {
  if (workers_asleep_.wake_one() || runner_asleep_.wake_one()) return;
  if (started_ < most_workers_ && !starting_) start_worker();
}

// Starts one thread at a time: a thread that takes a task and leaves others in the queue starts the
// next, so no task waits for more than one start.
void TaskPool::start_worker() {
  starting_ = true;
  ++started_;
  mutex_.unlock();
  std::thread worker;
  try {
    worker = std::thread([this] { work(); });
  } catch (const std::exception&) {  // no thread, or no memory for it
  }
  mutex_.lock();
  if (worker.joinable()) {
    workers_.push_back(std::move(worker));
    return;
  }
  most_workers_ = --started_;
  starting_ = false;
  if (!on_refusal_) return;
  mutex_.unlock();
  try {
    on_refusal_();
  } catch (const std::bad_alloc&) {  // no memory even to report it
  }
  mutex_.lock();
}

void TaskPool::run_next() {
  std::function<void()> task = std::move(queue_.front());
  queue_.pop_front();
  ++busy_;
  if (task_waits()) find_thread();
  mutex_.unlock();
  std::exception_ptr failure = run_task(lower_priority_, std::move(task));
  mutex_.lock();
  if (failure != nullptr && failure_ == nullptr) failure_ = std::move(failure);
  no_longer_busy();
}

void TaskPool::work() {
  MutexLock lock(mutex_);
  starting_ = false;
  for (;;) {
    if (ending_) return;
    if (task_waits()) {
      run_next();
    } else {
      workers_asleep_.sleep(lock);
    }
  }
}

void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::size_t most = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::atomic<std::size_t> next = 0;
  // The other indices are done after an exception, too: some may wait for them.
  const auto take = [&] {
    std::exception_ptr failure;
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        if (failure == nullptr) failure = std::current_exception();
      }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  };
  TaskPool pool(static_cast<int>(most));
  pool.run([&] {
    for (std::size_t i = 0; i < most; ++i) pool.submit(take);
  });
}

}  // namespace hmmjit
