// A mutex that clang's thread-safety analysis understands (`make check`); plain std::mutex
// otherwise.
#pragma once

#include <mutex>

#if defined(__clang__)
#define STINT_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define STINT_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) STINT_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY STINT_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) STINT_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES(x) STINT_THREAD_ATTRIBUTE(requires_capability(x))
#define EXCLUDES(x) STINT_THREAD_ATTRIBUTE(locks_excluded(x))
#define ACQUIRES(...) STINT_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRES(...) STINT_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define RELEASES(...) STINT_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS STINT_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace stint {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRES() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRES(true) { return mutex_.try_lock(); }
  void unlock() RELEASES() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRES(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASES() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // For std::condition_variable_any::wait(lock): the mutex is held again when it returns.
  void lock() NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void unlock() NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace stint
