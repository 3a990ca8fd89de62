// A mutex whose guarded members may only be accessed while it is held; Clang checks this at compile
// time (-Wthread-safety), other compilers ignore the annotations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HMMJIT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HMMJIT_THREAD_ANNOTATION(x)
#endif

/// A member that is accessed only while the mutex is held.
#define HMMJIT_GUARDED_BY(mutex) HMMJIT_THREAD_ANNOTATION(guarded_by(mutex))
/// A function that must be called with the mutex held.
#define HMMJIT_REQUIRES(...) HMMJIT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// A function that locks the mutex and must not be called with it held.
#define HMMJIT_EXCLUDES(...) HMMJIT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace hmmjit {

class HMMJIT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() HMMJIT_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() HMMJIT_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex until the end of its scope; can be unlocked and locked again in between.
class HMMJIT_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HMMJIT_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() HMMJIT_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() HMMJIT_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }
  void unlock() HMMJIT_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }
  /// Unlocks, waits for a notification (which may be spurious), and locks again.
  void wait(std::condition_variable& condition) { condition.wait(lock_); }
  /// False once `deadline` has passed.
  bool wait_until(std::condition_variable& condition,
                  std::chrono::steady_clock::time_point deadline) {
    return condition.wait_until(lock_, deadline) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hmmjit
