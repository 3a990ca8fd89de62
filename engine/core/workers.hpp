// A pool of worker threads.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.hpp"

namespace hmmjit {

/// At most `threads` worker threads, including the caller of run(). Each calls the same function
/// once; the function takes tasks, for example from an agenda, until none is left. If the system
/// refuses a thread, the others do its work. Workers run with flush-to-zero set.
///
///   Workers workers(16);
///   workers.run([&] {
///     while (auto task = next()) {
///       if (more_waits()) workers.add();
///       perform(*task);
///     }
///   });
class Workers {
 public:
  /// `lower_priority`: see SearchOptions. `on_refusal` (may be empty) is called once, from any
  /// worker, if the system refuses to start a thread.
  explicit Workers(int threads, int lower_priority = 0, std::function<void()> on_refusal = {});
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Calls `work` on this thread, and returns once all workers have ended. Rethrows the first
  /// exception. Call it once.
  void run(std::function<void()> work);
  /// Starts a worker unless the maximum is reached. Thread-safe; called by workers.
  void add();
  /// Number of threads that run or may still be started. Thread-safe.
  int threads() const;

 private:
  void work();

  const int lower_priority_;
  const std::function<void()> on_refusal_;
  std::function<void()> work_;
  mutable Mutex mutex_;
  std::size_t most_ HMMJIT_GUARDED_BY(mutex_), started_ HMMJIT_GUARDED_BY(mutex_) = 1;
  std::vector<std::thread> threads_ HMMJIT_GUARDED_BY(mutex_);
  std::exception_ptr failure_ HMMJIT_GUARDED_BY(mutex_);
};

/// Calls `work` with 0 to `count` - 1 on at most `threads` threads. After an exception, which it
/// rethrows, no further calls begin.
void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace hmmjit
