// One object per thread.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hmmjit {

/// Scratch memory and counters of threads: `local` returns the calling thread's object, created on
/// first use. The lookup takes a lock: call it at the start of a task, not in its loops. Objects
/// outlive their threads.
template <typename T>
class PerThread {
 public:
  /// Thread-safe.
  T& local() {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<T>& mine = objects_[std::this_thread::get_id()];
    if (mine == nullptr && !idle_.empty()) {
      mine = std::move(idle_.back());
      idle_.pop_back();
    }
    if (mine == nullptr) mine = std::make_unique<T>();
    return *mine;
  }
  /// Passes the objects of all threads so far, which must have finished with them, to further
  /// threads.
  void reuse() {
    const std::lock_guard lock(mutex_);
    for (auto& [thread, object] : objects_) idle_.push_back(std::move(object));
    objects_.clear();
  }
  /// Calls `visit` with the object of every thread, in no particular order. The threads must have
  /// finished with them.
  template <typename Visit>
  void for_each(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (auto& [thread, object] : objects_) visit(*object);
    for (auto& object : idle_) visit(*object);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::thread::id, std::unique_ptr<T>> objects_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace hmmjit
