// A mutex of which Clang checks at compile time that what it guards is only touched while it is
// held (-Wthread-safety). With other compilers the annotations are nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HMMJIT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HMMJIT_THREAD_ANNOTATION(x)
#endif

/// A member that is touched only while the mutex is held.
#define HMMJIT_GUARDED_BY(mutex) HMMJIT_THREAD_ANNOTATION(guarded_by(mutex))
/// A function that is called with the mutex held.
#define HMMJIT_REQUIRES(...) HMMJIT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// A function that takes the mutex: not to be called with it held.
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

/// Holds a mutex to the end of its scope; may be unlocked and locked again in between.
class HMMJIT_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HMMJIT_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() HMMJIT_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() HMMJIT_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }
  void unlock() HMMJIT_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }
  /// Waits, unlocked meanwhile, for a notification; it may come without a reason.
  void wait(std::condition_variable& condition) { condition.wait(lock_); }
  void wait_for(std::condition_variable& condition, std::chrono::milliseconds at_most) {
    condition.wait_for(lock_, at_most);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hmmjit
